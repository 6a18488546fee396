package instances

import (
	"context"

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
			result, err := cl.Query(ctx, id, query, payload)
			if err != nil {
				return err
			}
			body := httpapi.QueryResponse{InstanceID: id, Query: query, Result: result}
			return env.PrintResult(body, string(result)+"\n")
		})
	cmd.Args = cli.MoreArgs(1, &query, &input)
	cmd.Long = cmd.Short + `.

NAME is a query handler of the instance's code. The orchestrator function replays the instance and runs the
handler, even if the instance is paused, blocked or has ended. A query does not change the history. The
command prints the result as JSON. INPUT is JSON, @FILE, or - for stdin (default: null). The command requires
permission to invoke the hub's orchestrator function.`
	cmd.Example = `  perdure query order-7 progress
  perdure query order-7 total '{"currency": "EUR"}'`
	return cmd
}
