package instances

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// List returns the command list.
func List(env *cli.Env) *cobra.Command {
	var q client.ListQuery
	var p client.Paging
	var status, after, before string
	var tags []string
	var count bool
	list := func(ctx context.Context, cl *client.Client, _ string) error {
		q.Status = flagvalue.ParseStatus(status)
		if err := flagvalue.ParseStarted(after, before, &q.StartedAfter, &q.StartedBefore); err != nil {
			return err
		}
		var err error
		if q.Tags, err = flagvalue.ParseTags(tags); err != nil {
			return err
		}
		if count {
			return showCount(ctx, env, cl, q)
		}
		return listInstances(ctx, env, cl, q, p)
	}
	cmd := env.ClientCommand("list", "List instances, newest first", "", list)
	cmd.Long = cmd.Short + `.

Statuses:
  Pending      started, no turn has run yet
  Running      running code, or waiting
  Cancelling   cancelled, and running its cleanup
  Blocked      the code cannot process the history. perdure status shows why. Inputs are parked.
               The instance continues when a suitable build is deployed.
  Paused       paused by a user. perdure status shows the caller and the reason. Inputs are parked.
  Completed, Failed, Cancelled, Terminated
               ended
  Deleting     ended, and being purged. The hub finishes the purge within minutes.`
	cmd.Example = `  perdure list
  perdure list --status Blocked
  perdure list --status Blocked --count
  perdure list --status Failed --name fulfil --limit 10
  perdure list --name fulfil --version 1.2.0 --tag customer=7 --started-after 2026-07-01T00:00:00Z
  perdure list --parent order-7`
	cmd.Flags().StringVar(&status, "status", "", "status of the instances, such as Running or Failed")
	cmd.Flags().StringVar(&q.Orchestration, "name", "", "orchestration of the instances")
	cmd.Flags().StringVar(&q.Version, "version", "", "orchestration version of the instances")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "tag of the instances as KEY=VALUE; repeatable")
	cmd.Flags().StringVar(&q.ParentID, "parent", "", "ID of the parent instance that waits for them")
	cmd.Flags().StringVar(&after, "started-after", "", flagvalue.StartedAfterUsage)
	cmd.Flags().StringVar(&before, "started-before", "", flagvalue.StartedBeforeUsage)
	cmd.Flags().BoolVar(&count, "count", false, "number of matching instances only; reads all of them")
	flagvalue.AddPaging(cmd, &p, 50)
	cli.CompleteFlag(cmd, "status", flagvalue.Statuses()...)
	return cmd
}

// instanceCount is the --json output of list --count.
type instanceCount struct {
	Count int `json:"count"`
}

// showCount prints the number of matching instances.
func showCount(ctx context.Context, env *cli.Env, cl *client.Client, q client.ListQuery) error {
	var all instanceCount
	for _, err := range cl.List(ctx, q) {
		if err != nil {
			return err
		}
		all.Count++
	}
	return env.PrintResult(all, fmt.Sprintln(all.Count))
}

func listInstances(ctx context.Context, env *cli.Env, cl *client.Client, q client.ListQuery, p client.Paging) error {
	if err := flagvalue.CheckLimit(p.Limit); err != nil {
		return err
	}
	page, err := readPages(ctx, cl, q, p)
	if err != nil {
		return err
	}
	table := ListText(page.Items, q.Status == client.StatusPaused)
	return env.PrintPage(httpapi.NewInstancePage(page), table, page.NextCursor)
}

// readPages reads pages until it has p.Limit instances, because a page may be short if few instances match.
func readPages(
	ctx context.Context, cl *client.Client, q client.ListQuery, p client.Paging,
) (all client.Page[client.Status], err error) {
	for want := p.Limit; ; {
		page, err := cl.ListPage(ctx, q, p)
		if err != nil {
			return all, err
		}

		all.Items = append(all.Items, page.Items...)
		all.NextCursor = page.NextCursor
		p.Cursor = page.NextCursor
		p.Limit = want - len(all.Items)
		if p.Cursor == "" || p.Limit == 0 {
			return all, nil
		}
	}
}

// maxListWidth is the maximum width of a table with the column PARENT, in characters.
const maxListWidth = 120

// ListText returns a table of instances. The table has the column PARENT if an instance has a parent and the table
// does not exceed maxListWidth. If pauses is true, the table includes the pause of each instance.
func ListText(instances []client.Status, pauses bool) string {
	hasParent := slices.ContainsFunc(instances, func(s client.Status) bool { return s.Parent != nil })
	if hasParent {
		if text := instanceRows(instances, true, pauses); term.Width(text) <= maxListWidth {
			return text
		}
	}
	return instanceRows(instances, false, pauses)
}

func instanceRows(instances []client.Status, parents, pauses bool) string {
	t := term.Table{Header: []string{
		"INSTANCE", term.ColumnOrchestration, term.ColumnVersion, term.ColumnStatus, term.ColumnStarted, ">TOOK",
	}}
	if parents {
		t.Header = append(t.Header, "PARENT")
	}
	for i := range instances {
		s := &instances[i]
		row := []string{
			term.Clean(s.InstanceID), term.Excerpt(s.Orchestration, term.MaxName),
			term.Excerpt(s.Version, term.MaxName),
			string(s.Status), term.Time(s.CreatedAt), describe.Took(*s),
		}
		if parents {
			row = append(row, parentText(s))
		}
		t.Add(row...)
		if pauses && s.Paused != nil {
			text := term.OneLine(describe.Pause(s.Paused))
			t.Note(term.Wrap("paused ", text, term.ScreenWidth-len(term.NoteIndent))...)
		}
	}
	return t.String()
}

// parentText returns the ID of an instance's parent, or "" if it has none.
func parentText(s *client.Status) string {
	if s.Parent == nil {
		return ""
	}
	return term.Clean(s.Parent.InstanceID)
}
