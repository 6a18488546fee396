package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

func listVerb(c *command) *cobra.Command {
	var q client.ListQuery
	var p client.Paging
	var status, after, before string
	var tags []string
	var count bool
	cmd := c.verb("list", "List instances, newest first", "", func(ctx context.Context, cl *client.Client, _ string) error {
		q.Status = parseStatus(status)
		if err := parseStarted(after, before, &q.StartedAfter, &q.StartedBefore); err != nil {
			return err
		}
		var err error
		if q.Tags, err = parseTags(tags); err != nil {
			return err
		}
		if count {
			return showCount(ctx, c, cl, q)
		}
		return c.list(ctx, cl, q, p)
	})
	cmd.Long = cmd.Short + `.

Statuses:
  Pending      started, no turn has run yet
  Running      running code, or waiting
  Cancelling   cancelled, and running its cleanup
  Blocked      the code cannot process the history. perdure status shows why. Inputs are parked.
               The instance continues when a suitable build is deployed.
  Paused       paused by a user. perdure status shows who and why. Inputs are parked until it is resumed.
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
	cmd.Flags().StringVar(&after, "started-after", "", startedAfterUsage)
	cmd.Flags().StringVar(&before, "started-before", "", startedBeforeUsage)
	cmd.Flags().BoolVar(&count, "count", false, "number of matching instances only; reads all of them")
	cmd.Flags().IntVar(&p.Limit, "limit", 50, limitUsage)
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", cursorUsage)
	completeWith(cmd, "status", statuses()...)
	return cmd
}

// statuses returns all statuses of instances.
func statuses() []client.RuntimeStatus {
	return []client.RuntimeStatus{
		client.StatusPending, client.StatusRunning, client.StatusCompleted, client.StatusFailed,
		client.StatusCancelling, client.StatusCancelled, client.StatusTerminated, client.StatusBlocked,
		client.StatusPaused, client.StatusDeleting,
	}
}

// parseStatus returns the status with this name in any case. It returns other names unchanged.
func parseStatus(name string) client.RuntimeStatus {
	for _, s := range statuses() {
		if strings.EqualFold(name, string(s)) {
			return s
		}
	}
	return client.RuntimeStatus(name)
}

// counted is the --json output of list --count.
type counted struct {
	Count int `json:"count"`
}

// showCount prints how many instances a query selects.
func showCount(ctx context.Context, c *command, cl *client.Client, q client.ListQuery) error {
	var all counted
	for _, err := range cl.List(ctx, q) {
		if err != nil {
			return err
		}
		all.Count++
	}
	if c.json {
		return c.printJSON(all)
	}
	return c.print(fmt.Sprintln(all.Count))
}

func (c *command) list(ctx context.Context, cl *client.Client, q client.ListQuery, p client.Paging) error {
	if err := checkLimit(p.Limit); err != nil {
		return err
	}
	page, err := fill(ctx, cl, q, p)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewInstancePage(page))
	}
	if err := c.print(instanceTable(page.Items)); err != nil {
		return err
	}
	c.more(page.NextCursor)
	return nil
}

// fill reads pages until it has as many instances as are asked for: where few are selected, a page may be short.
func fill(ctx context.Context, cl *client.Client, q client.ListQuery, p client.Paging) (all client.Page[client.Status], err error) {
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

// limitUsage describes the --limit flag of a list.
const limitUsage = "maximum number of rows, 1 to 1000"

// cursorUsage describes the --cursor flag of a list.
const cursorUsage = "position at which the previous page with the same flags ended"

// checkLimit rejects 0, which the client treats as no limit.
func checkLimit(limit int) error {
	if limit < 1 {
		return &provider.FieldError{Field: "--limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", client.MaxPageSize, limit)}
	}
	return nil
}

// more prints how to continue a list that has more rows.
func (c *command) more(cursor string) {
	if cursor != "" {
		fmt.Fprintf(c.err, "more rows available; repeat the command with --cursor %s\n", clean(cursor))
	}
}

const longestName = 32

// maxListWidth is the number of columns up to which a list has the column PARENT.
const maxListWidth = 120

// instanceTable returns instances as a table. It has the column PARENT if an instance has a parent and there is space.
func instanceTable(instances []client.Status) string {
	hasParent := slices.ContainsFunc(instances, func(s client.Status) bool { return s.Parent != nil })
	if hasParent {
		if text := instanceRows(instances, true); width(text) <= maxListWidth {
			return text
		}
	}
	return instanceRows(instances, false)
}

func instanceRows(instances []client.Status, parents bool) string {
	t := table{header: []string{"INSTANCE", columnOrchestration, columnVersion, columnStatus, columnStarted, ">TOOK"}}
	if parents {
		t.header = append(t.header, "PARENT")
	}
	for i := range instances {
		s := &instances[i]
		row := []string{
			clean(s.InstanceID), excerpt(s.Orchestration, longestName), excerpt(s.Version, longestName),
			string(s.Status), moment(s.CreatedAt), took(*s),
		}
		if parents {
			row = append(row, parentText(s))
		}
		t.add(row...)
	}
	return t.String()
}

// parentText returns the ID of an instance's parent, or "" if it has none.
func parentText(s *client.Status) string {
	if s.Parent == nil {
		return ""
	}
	return clean(s.Parent.InstanceID)
}

// width returns the number of columns of a text.
func width(text string) int {
	columns := 0
	for line := range strings.Lines(text) {
		columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return columns
}
