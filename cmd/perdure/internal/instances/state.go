package instances

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

// State returns the command state.
func State(env *cli.Env) *cobra.Command {
	key := ""
	cmd := env.ClientCommand("state ENTITY KEY", "Show an entity's state", cli.ArgName,
		func(ctx context.Context, cl *client.Client, entity string) error {
			state, err := cl.EntityState(ctx, entity, key)
			switch {
			case err != nil:
				return entityError(env, entity, err)
			case env.JSON:
				id := perdure.EntityInstanceID(entity, key)
				return env.PrintJSON(httpapi.EntityState{Entity: entity, Key: key, InstanceID: id, State: state})
			default:
				return env.Print(string(state) + "\n")
			}
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const both = 2
		if len(args) != both {
			return fmt.Errorf("expected 2 arguments; usage: %s", cmd.UseLine())
		}
		key = args[1]
		return nil
	}
	cmd.Long = cmd.Short + `.

The state after the last operation is printed as JSON. The command requires permission to invoke the hub's
orchestrator function.`
	cmd.Example = `  perdure state account ann`
	return cmd
}
