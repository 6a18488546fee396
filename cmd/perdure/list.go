package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

func (c *command) listVerb() *cobra.Command {
	var q client.Query
	var status string
	cmd := c.verb("list", "List instances, newest first", "", func(ctx context.Context, cl *client.Client, _ string) error {
		q.Status = client.RuntimeStatus(status)
		return c.list(ctx, cl, q)
	})
	cmd.Long = cmd.Short + `.

  Pending      started, and no turn has run yet
  Running      at work, or waiting
  Cancelling   asked to end, and unwinding
  Blocked      its code or history stands in its way: perdure status tells what. It keeps what
               arrives, and goes on by itself once a build is deployed that can
  Completed, Failed, Cancelled, Terminated
               over
  Deleting     over, and being purged: the hub finishes that within minutes`
	cmd.Example = `  perdure list
  perdure list --status Blocked
  perdure list --status Failed --name fulfil --limit 10`
	cmd.Flags().StringVar(&status, "status", "", "only instances with this status, such as Running or Failed")
	cmd.Flags().StringVar(&q.Name, "name", "", "only instances of this orchestration")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "show at most this many, up to 1000")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on where a list with the same filter ended")
	completeWith(cmd, "status", client.StatusPending, client.StatusRunning, client.StatusCompleted, client.StatusFailed,
		client.StatusCancelling, client.StatusCancelled, client.StatusTerminated, client.StatusBlocked, client.StatusDeleting)
	return cmd
}

func (c *command) list(ctx context.Context, cl *client.Client, q client.Query) error {
	if err := checkLimit(q.Limit); err != nil {
		return err
	}
	page, err := fill(ctx, cl, q)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewInstances(page))
	}
	if err := c.print(instanceTable(page.Instances)); err != nil {
		return err
	}
	c.more(page.NextCursor)
	return nil
}

// fill reads pages until there are as many instances as are asked for: where few are selected a page may be short.
func fill(ctx context.Context, cl *client.Client, q client.Query) (all client.Page, err error) {
	for want := q.Limit; ; {
		page, err := cl.ListPage(ctx, q)
		if err != nil {
			return all, err
		}
		all.Instances, all.NextCursor = append(all.Instances, page.Instances...), page.NextCursor
		q.Cursor, q.Limit = page.NextCursor, want-len(all.Instances)
		if q.Cursor == "" || q.Limit == 0 {
			return all, nil
		}
	}
}

// checkLimit refuses 0, which to the client is none.
func checkLimit(limit int) error {
	if limit < 1 {
		return &provider.FieldError{Field: "--limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", client.MaxPage, limit)}
	}
	return nil
}

// more says how a list goes on that was cut off.
func (c *command) more(cursor string) {
	if cursor != "" {
		fmt.Fprintf(c.err, "there are more: go on with the same flags and --cursor %s\n", clean(cursor))
	}
}

const longestName = 32

func instanceTable(instances []client.Status) string {
	t := table{header: []string{"INSTANCE", "ORCHESTRATION", "VERSION", "STATUS", "STARTED", ">TOOK"}}
	for _, s := range instances {
		t.add(clean(s.InstanceID), excerpt(s.Orchestration, longestName), excerpt(s.Version, longestName), string(s.Status), moment(s.CreatedAt), took(s))
	}
	return t.String()
}
