package instances

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// Executions returns the command executions.
func Executions(env *cli.Env) *cobra.Command {
	var limit int
	var cursor string
	cmd := env.ClientCommand("executions ID", "List an instance's executions", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return listExecutions(ctx, env, cl, id, limit, cursor)
		})
	cmd.Long = cmd.Short + `, the current one first.

Continue-as-new starts the next execution. Each execution has its own history.`
	cmd.Example = `  perdure executions poller
  perdure history poller --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S`
	cmd.Flags().IntVar(&limit, "limit", 50, flagvalue.LimitUsage)
	cmd.Flags().StringVar(&cursor, "cursor", "", flagvalue.CursorUsage)
	return cmd
}

func listExecutions(ctx context.Context, env *cli.Env, cl *client.Client, id string, limit int, cursor string) error {
	if err := flagvalue.CheckLimit(limit); err != nil {
		return err
	}
	page, err := cl.ExecutionsPage(ctx, id, client.Paging{Limit: limit, Cursor: cursor})
	if err != nil {
		return err
	}
	if env.JSON {
		return env.PrintJSON(httpapi.NewExecutionPage(id, page))
	}
	t := term.Table{Header: []string{">NUMBER", "EXECUTION", term.ColumnStarted}}
	for _, x := range page.Items {
		t.Add(strconv.FormatInt(x.Number, 10), term.Clean(x.ExecutionID), term.Time(x.StartedAt))
	}
	if err := env.Print(t.String()); err != nil {
		return err
	}
	env.PrintCursor(page.NextCursor)
	return nil
}
