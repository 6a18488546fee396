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
	cmd.Flags().StringVar(&status, "status", "", "only instances with this status, such as Running or Failed")
	cmd.Flags().StringVar(&q.Name, "name", "", "only instances of this orchestration")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "show at most this many, up to 1000")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on where a list with the same filter ended")
	return cmd
}

func (c *command) list(ctx context.Context, cl *client.Client, q client.Query) error {
	if q.Limit < 1 {
		return &provider.FieldError{Field: "--limit", Problem: fmt.Sprintf("must be 1 to %d, is %d", client.MaxPage, q.Limit)}
	}
	page, err := cl.ListPage(ctx, q)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewInstances(page))
	}
	if err := c.print(instanceTable(page.Instances)); err != nil {
		return err
	}
	if page.NextCursor != "" {
		fmt.Fprintf(c.err, "there are more: go on with the same flags and --cursor %s\n", page.NextCursor)
	}
	return nil
}

const longestName = 32

func instanceTable(instances []client.Status) string {
	t := table{header: []string{"INSTANCE", "ORCHESTRATION", "VERSION", "STATUS", "STARTED", ">TOOK"}}
	for _, s := range instances {
		took := ""
		if s.Status.Terminal() {
			took = span(s.UpdatedAt.Sub(s.CreatedAt))
		}
		t.add(clean(s.InstanceID), excerpt(s.Orchestration, longestName), excerpt(s.Version, longestName), string(s.Status), moment(s.CreatedAt), took)
	}
	return t.String()
}
