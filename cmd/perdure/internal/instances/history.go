package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
)

// History returns the command history.
func History(env *cli.Env) *cobra.Command {
	var execution string
	cmd := env.ClientCommand("history ID", "Show an instance's events", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return showHistory(ctx, env, cl, id, execution)
		})
	cmd.Long = cmd.Short + `.

OFFSET is the time since the start of the execution. TOOK is the time between the scheduling and the end of
an activity or timer, or … if it has not ended. The command shows the current execution unless --execution
selects another one. With --json it prints a document (perdure.history/1) of all executions, the oldest
first, which a unit test can replay.`
	cmd.Example = `  perdure history order-7
  perdure history order-7 --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S
  perdure history order-7 --json > testdata/order-7.json`
	cmd.Flags().StringVar(&execution, "execution", "", "execution ID (default: the current one; with --json, all)")
	return cmd
}

func showHistory(ctx context.Context, env *cli.Env, cl *client.Client, id, execution string) error {
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	if env.JSON {
		return printDocument(ctx, env, cl, s, execution)
	}
	if execution == "" {
		execution = s.ExecutionID
	}
	events, err := readEvents(ctx, cl, s, execution)
	if err != nil {
		return err
	}
	return env.Print(describe.History(s, execution, events))
}
