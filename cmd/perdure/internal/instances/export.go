package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Export returns the command export.
func Export(env *cli.Env) *cobra.Command {
	var execution string
	cmd := env.ClientCommand("export ID", "Export an instance's history", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			s, err := cl.Status(ctx, id)
			if err != nil {
				return err
			}
			return printDocument(ctx, env, cl, s, execution)
		})
	cmd.Long = cmd.Short + `.

The output is a document (perdure.history/1) of all executions, the oldest first. It contains every input,
result and event, so protect the file like its data. perdure import replays the document against a binary
without a hub, and perduretest.Replay replays it in a unit test.`
	cmd.Example = `  perdure export order-7 --hub production > order-7.json
  perdure import order-7.json --binary dist/orchestrator-local`
	cmd.Flags().StringVar(&execution, "execution", "",
		"ID of the execution to export (default: all; an execution may refer to earlier payloads)")
	return cmd
}
