package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func executionsVerb(c *command) *cobra.Command {
	var limit int
	var cursor string
	cmd := c.verb("executions ID", "List an instance's executions", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return c.executions(ctx, cl, id, limit, cursor)
		})
	cmd.Long = cmd.Short + `, the current one first.

Continue-as-new starts the next execution. Each execution has its own history.`
	cmd.Example = `  perdure executions poller
  perdure history poller --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S`
	cmd.Flags().IntVar(&limit, "limit", 50, limitUsage)
	cmd.Flags().StringVar(&cursor, "cursor", "", cursorUsage)
	return cmd
}

func (c *command) executions(ctx context.Context, cl *client.Client, id string, limit int, cursor string) error {
	if err := checkLimit(limit); err != nil {
		return err
	}
	page, err := cl.ExecutionsPage(ctx, id, client.Paging{Limit: limit, Cursor: cursor})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewExecutionPage(id, page))
	}
	t := table{header: []string{">NUMBER", "EXECUTION", columnStarted}}
	for _, x := range page.Items {
		t.add(strconv.FormatInt(x.Number, 10), clean(x.ExecutionID), moment(x.StartedAt))
	}
	if err := c.print(t.String()); err != nil {
		return err
	}
	c.more(page.NextCursor)
	return nil
}
