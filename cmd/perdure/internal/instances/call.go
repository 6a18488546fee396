package instances

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/httpapi"
)

// Call returns the command call.
func Call(env *cli.Env) *cobra.Command {
	key, operation, input, callID := "", "", cli.NoInput, ""
	var timeout time.Duration
	var cmd *cobra.Command
	cmd = env.ClientCommand("call ENTITY KEY OPERATION [INPUT]", "Call an entity operation", cli.ArgName,
		func(ctx context.Context, cl *client.Client, entity string) error {
			payload, err := env.ReadInput(input)
			if err != nil {
				return err
			}
			var opts []client.UpdateOption
			if cmd.Flags().Changed("update-id") {
				opts = append(opts, client.WithUpdateID(callID))
			}
			limited, cancel := flagvalue.WithTimeout(ctx, timeout)
			defer cancel()
			result, err := cl.CallEntity(limited, entity, key, operation, payload, opts...)
			return printUpdated(env, httpapi.UpdateResponse{
				InstanceID: perdure.EntityInstanceID(entity, key), Update: operation, UpdateID: callID, Result: result,
			}, entityError(env, entity, err))
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const least, most = 3, 4
		if len(args) < least || len(args) > most {
			return fmt.Errorf("expected 3 or 4 arguments; usage: %s", cmd.UseLine())
		}
		key, operation = args[1], args[2]
		if len(args) == most {
			input = args[3]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

The command waits for the result and prints it as JSON. The first call of a KEY creates the entity.
Operations of one key run one at a time, in the order of their arrival. INPUT is JSON, @FILE, or - for stdin
(default: null). The entity is the instance @ENTITY@KEY, which other commands can show, pause and purge. A
repeated call with the same --update-id runs the operation once.

If --timeout expires first, the command exits with code 4 and the call continues.`
	cmd.Example = `  perdure call account ann deposit 50
  perdure call account ann deposit 50 --update-id payment-99 --timeout 30s`
	cmd.Flags().StringVar(&callID, "update-id", "", "ID of the call, for deduplication (default: generated)")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, flagvalue.TimeoutUsage)
	return cmd
}

// entityError replaces errors about an instance by errors about an entity.
func entityError(env *cli.Env, entity string, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return cli.Exitf(cli.CodeError, "no build deployed to hub %q has entity %q; check the spelling, "+
			"or deploy it and retry after a moment", env.HubName, entity)
	case errors.Is(err, client.ErrNotFound):
		return cli.Exitf(cli.CodeError, "key of entity %q not found in hub %q; the first call creates it, "+
			"and perdure list --name @%s lists all keys", entity, env.HubName, entity)
	default:
		return err
	}
}
