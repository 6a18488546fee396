package instances

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

// Call returns the command call.
func Call(env *cli.Env) *cobra.Command {
	var key, operation string
	var cmd *cobra.Command
	f := updateFlags{input: cli.NoInput}
	cmd = env.ClientCommand("call ENTITY KEY OPERATION [INPUT]", "Call an entity operation", cli.ArgName,
		func(ctx context.Context, cl *client.Client, entity string) error {
			send := func(ctx context.Context, input any, opts ...client.UpdateOption) (json.RawMessage, error) {
				result, err := cl.CallEntity(ctx, entity, key, operation, input, opts...)
				return result, entityError(env, entity, err)
			}
			id := perdure.EntityInstanceID(entity, key)
			return f.run(ctx, env, cmd, httpapi.UpdateResponse{InstanceID: id, Update: operation}, send)
		})
	cmd.Args = cli.MoreArgs(1, &key, &operation, &f.input)
	cmd.Long = cmd.Short + `.

The command waits for the result and prints it as JSON. The first call of a KEY creates the entity.
Operations of one key run one at a time, in the order of their arrival. INPUT is JSON, @FILE, or - for stdin
(default: null). The entity is the instance @ENTITY@KEY, which other commands can show, pause and purge. A
repeated call with the same --update-id runs the operation once.

If --timeout expires first, the command exits with code 4 and the call continues.`
	cmd.Example = `  perdure call account ann deposit 50
  perdure call account ann deposit 50 --update-id payment-99 --timeout 30s`
	f.add(cmd, "call")
	return cmd
}

// entityError replaces errors about an instance by errors about an entity.
func entityError(env *cli.Env, entity string, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return cli.Exitf(cli.CodeError, "no build deployed to %s has entity %q; check the spelling, "+
			"or deploy it and retry after a moment", env.Place(), entity)
	case errors.Is(err, client.ErrNotFound):
		return cli.Exitf(cli.CodeError, "key of entity %q not found in %s; the first call creates it, "+
			"and perdure list --name @%s lists all keys", entity, env.Place(), entity)
	default:
		return err
	}
}
