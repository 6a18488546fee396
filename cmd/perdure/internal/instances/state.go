package instances

import (
	"context"

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
			if err != nil {
				return entityError(env, entity, err)
			}
			id := perdure.EntityInstanceID(entity, key)
			body := httpapi.EntityState{Entity: entity, Key: key, InstanceID: id, State: state}
			return env.PrintResult(body, string(state)+"\n")
		})
	cmd.Args = cli.MoreArgs(0, &key)
	cmd.Long = cmd.Short + `.

The command prints the state after the last operation as JSON. It requires permission to invoke the hub's
orchestrator function.`
	cmd.Example = `  perdure state account ann`
	return cmd
}
