package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/scan"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Versions returns the command versions.
func Versions(env *cli.Env) *cobra.Command {
	var name string
	var ofChanges bool
	maxInstances := 0
	var cmd *cobra.Command
	cmd = env.ClientCommand("versions", "Count running instances by version", "",
		func(ctx context.Context, cl *client.Client, _ string) error {
			switch {
			case maxInstances < 1:
				return fmt.Errorf("--max-instances must be 1 or more, is %d", maxInstances)
			case ofChanges:
				return showChanges(ctx, env, cl, name, maxInstances)
			case cmd.Flags().Changed("max-instances"):
				return errors.New("--max-instances requires --changes")
			default:
				return versions(ctx, env, cl, name)
			}
		})
	cmd.Long = cmd.Short + `.

The command counts the instances that have not ended, by orchestration and version. You can remove the code of
a version when no instance is counted under it. An instance that was started without a version gets one in
its first turn. The command reads all instances of the hub from an index that may be a second behind. With
--changes, it reads the histories of up to --max-instances instances and counts the versions of changes
(perdure.Version) instead. In that table, "none" means that the instance has not reached the change, or passed
it before the change existed. A version without changes has one row.

Exit codes:
  0  all instances were counted
  1  error, or --changes skipped instances because of --max-instances or unreadable histories`
	cmd.Example = `  perdure versions
  perdure versions --changes --name fulfil --max-instances 10000
  perdure versions --name fulfil`
	cmd.Flags().StringVar(&name, "name", "", "orchestration of the instances")
	cmd.Flags().BoolVar(&ofChanges, "changes", false, "count by versions of changes, which reads the histories")
	cmd.Flags().IntVar(&maxInstances, "max-instances", 1000, "maximum number of instances to read with --changes")
	return cmd
}

// versionCount is the number of instances of one version, by status.
type versionCount struct {
	Orchestration string `json:"orchestration"`
	// Version is empty for instances that have no version yet.
	Version    string    `json:"version"`
	Pending    int       `json:"pending"`
	Running    int       `json:"running"`
	Cancelling int       `json:"cancelling"`
	Blocked    int       `json:"blocked"`
	Paused     int       `json:"paused"`
	Oldest     time.Time `json:"oldestCreatedAt"`
}

// versionCounts is the --json output of versions.
type versionCounts struct {
	Versions []versionCount `json:"versions"`
}

func versions(ctx context.Context, env *cli.Env, cl *client.Client, name string) error {
	counts, err := countVersions(ctx, env, cl, name)
	if err != nil {
		return err
	}
	t := term.Table{Header: []string{
		term.ColumnOrchestration, term.ColumnVersion, ">PENDING", ">RUNNING", ">CANCELLING", ">BLOCKED", ">PAUSED",
		"OLDEST STARTED",
	}}
	for _, v := range counts {
		t.Add(term.Excerpt(v.Orchestration, term.MaxName), term.Excerpt(term.OrDash(v.Version), term.MaxName),
			strconv.Itoa(v.Pending), strconv.Itoa(v.Running), strconv.Itoa(v.Cancelling), strconv.Itoa(v.Blocked),
			strconv.Itoa(v.Paused), term.Time(v.Oldest))
	}
	return env.PrintResult(versionCounts{counts}, t.String())
}

// countVersions counts instances by version.
func countVersions(ctx context.Context, env *cli.Env, cl *client.Client, name string) ([]versionCount, error) {
	p := env.StartProgress()
	defer p.Stop()
	counts := map[[2]string]*versionCount{}
	list := func(at client.Paging) (client.Page[client.Status], error) {
		return cl.ListPage(ctx, client.ListQuery{Orchestration: name}, at)
	}
	err := scan.EachInstance(list, p, func(s *client.Status) { count(counts, s) })
	return sorted(counts), err
}

// count counts an instance that has not ended.
func count(counts map[[2]string]*versionCount, s *client.Status) {
	key := [2]string{s.Orchestration, s.Version}
	v := counts[key]
	if v == nil {
		v = &versionCount{Orchestration: s.Orchestration, Version: s.Version}
	}
	switch s.Status {
	case client.StatusPending:
		v.Pending++
	case client.StatusRunning:
		v.Running++
	case client.StatusCancelling:
		v.Cancelling++
	case client.StatusBlocked:
		v.Blocked++
	case client.StatusPaused:
		v.Paused++
	default:
		return
	}
	if v.Oldest.IsZero() || s.CreatedAt.Before(v.Oldest) {
		v.Oldest = s.CreatedAt
	}
	counts[key] = v
}

func sorted(counts map[[2]string]*versionCount) []versionCount {
	all := []versionCount{}
	for v := range maps.Values(counts) {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b versionCount) int {
		return cmp.Or(cmp.Compare(a.Orchestration, b.Orchestration), cmp.Compare(a.Version, b.Version))
	})
	return all
}
