package instances

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

// Query returns the command query.
func Query(env *cli.Env) *cobra.Command {
	query, input := "", cli.NoInput
	cmd := env.ClientCommand("query ID NAME [INPUT]", "Run a query handler", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			payload, err := env.ReadInput(input)
			if err != nil {
				return err
			}
			answer, err := cl.Query(ctx, id, query, payload)
			switch {
			case err != nil:
				return err
			case env.JSON:
				return env.PrintJSON(httpapi.QueryResponse{InstanceID: id, Query: query, Result: answer})
			default:
				return env.Print(string(answer) + "\n")
			}
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 || len(args) > 3 {
			return fmt.Errorf("expected 2 or 3 arguments; usage: %s", cmd.UseLine())
		}
		query = args[1]
		if len(args) == 3 {
			input = args[2]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

NAME is a query handler of the instance's code. The orchestrator function replays the instance and runs the
handler, also if the instance is paused, blocked or has ended. The history is not changed. The result is
printed as JSON. INPUT is JSON, @FILE, or - for stdin (default: null). The command requires permission to
invoke the hub's orchestrator function.`
	cmd.Example = `  perdure query order-7 progress
  perdure query order-7 total '{"currency": "EUR"}'`
	return cmd
}
