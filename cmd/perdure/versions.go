package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func versionsVerb(c *command) *cobra.Command {
	var name string
	var ofChanges bool
	most := 0
	cmd := c.verb("versions", "Count the instances that are not over, by orchestration and version", "",
		func(ctx context.Context, cl *client.Client, _ string) error {
			if most < 1 {
				return fmt.Errorf("--most must be 1 or more, is %d", most)
			}
			if ofChanges {
				return changes(ctx, c, cl, name, most)
			}
			return versions(ctx, c, cl, name)
		})
	cmd.Long = cmd.Short + `.

Code of a version may go once nothing is counted under it. An instance that was started without a
version has none before its first turn, which takes the highest that is deployed.

It reads each instance of the hub, those that are over too, from an index that may be a second
behind: 1000 with a query.

With --changes it counts the versions of changes (perdure.Version) that instances go by instead. These are
in their histories, each of which is read: of --most instances. One that has none of a change has
not come to it, or had passed it before it was there.`
	cmd.Example = `  perdure versions
  perdure versions --changes --name fulfil --most 10000
  perdure versions --name fulfil`
	cmd.Flags().StringVar(&name, "name", "", "only instances of this orchestration")
	cmd.Flags().BoolVar(&ofChanges, "changes", false, "count versions of changes: it reads the history of each instance")
	cmd.Flags().IntVar(&most, "most", 1000, "with --changes: read the histories of at most this many instances")
	return cmd
}

// versionCount is how many instances of one version there are, by their status.
type versionCount struct {
	Orchestration string `json:"orchestration"`
	// Version is empty for instances that have none yet.
	Version    string    `json:"version"`
	Pending    int       `json:"pending"`
	Running    int       `json:"running"`
	Cancelling int       `json:"cancelling"`
	Blocked    int       `json:"blocked"`
	Paused     int       `json:"paused"`
	Oldest     time.Time `json:"oldestCreatedAt"`
}

// versionCounts is what versions prints with --json.
type versionCounts struct {
	Versions []versionCount `json:"versions"`
}

func versions(ctx context.Context, c *command, cl *client.Client, name string) error {
	counts, err := countVersions(ctx, c, cl, name)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(versionCounts{counts})
	}
	t := table{header: []string{columnOrchestration, columnVersion, ">PENDING", ">RUNNING", ">CANCELLING", ">BLOCKED", ">PAUSED", "OLDEST STARTED"}}
	for _, v := range counts {
		t.add(excerpt(v.Orchestration, longestName), excerpt(cmp.Or(v.Version, "—"), longestName), strconv.Itoa(v.Pending), strconv.Itoa(v.Running),
			strconv.Itoa(v.Cancelling), strconv.Itoa(v.Blocked), strconv.Itoa(v.Paused), moment(v.Oldest))
	}
	return c.print(t.String())
}

// countVersions counts instances by version.
func countVersions(ctx context.Context, c *command, cl *client.Client, name string) ([]versionCount, error) {
	counts := map[[2]string]*versionCount{}
	err := eachInstance(ctx, c, cl, client.Query{Name: name}, func(s *client.Status) { count(counts, s) })
	return sorted(counts), err
}

// eachInstance reads all instances that a query selects in one pass, so that one which goes from status to status is not missed.
func eachInstance(ctx context.Context, c *command, cl *client.Client, q client.Query, do func(s *client.Status)) error {
	read, told := 0, time.Now()
	for p := (client.Paging{Limit: client.MaxPage}); ; {
		page, err := cl.ListPage(ctx, q, p)
		if err != nil {
			return err
		}
		for i := range page.Items {
			do(&page.Items[i])
		}

		read += len(page.Items)
		if c.attended && time.Since(told) >= progressEvery {
			told = time.Now()
			fmt.Fprintf(c.err, "perdure: %d instances read\n", read)
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			return nil
		}
	}
}

// count counts an instance, unless it is over.
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
