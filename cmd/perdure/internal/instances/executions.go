package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// Executions returns the command executions.
func Executions(env *cli.Env) *cobra.Command {
	var p client.Paging
	cmd := env.ClientCommand("executions ID", "List an instance's executions", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return listExecutions(ctx, env, cl, id, p)
		})
	cmd.Long = cmd.Short + `, the current execution first.

Continue-as-new starts the next execution. Each execution has its own history.`
	cmd.Example = `  perdure executions poller
  perdure history poller --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S`
	flagvalue.AddPaging(cmd, &p, 50)
	return cmd
}

func listExecutions(ctx context.Context, env *cli.Env, cl *client.Client, id string, p client.Paging) error {
	if err := flagvalue.CheckLimit(p.Limit); err != nil {
		return err
	}
	page, err := cl.ExecutionsPage(ctx, id, p)
	if err != nil {
		return err
	}
	t := term.Table{Header: []string{">NUMBER", "EXECUTION", term.ColumnStarted}}
	for _, x := range page.Items {
		t.Add(term.Number(x.Number), term.Clean(x.ExecutionID), term.Time(x.StartedAt))
	}
	return env.PrintPage(httpapi.NewExecutionPage(id, page), t.String(), page.NextCursor)
}
