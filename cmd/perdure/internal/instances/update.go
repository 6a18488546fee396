package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/httpapi"
)

// Update returns the command update.
func Update(env *cli.Env) *cobra.Command {
	var update string
	var cmd *cobra.Command
	f := updateFlags{input: cli.NoInput}
	cmd = env.ClientCommand("update ID NAME [INPUT]", "Run an update handler", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			send := func(ctx context.Context, input any, opts ...client.UpdateOption) (json.RawMessage, error) {
				return cl.Update(ctx, id, update, input, opts...)
			}
			return f.run(ctx, env, cmd, httpapi.UpdateResponse{InstanceID: id, Update: update}, send)
		})
	cmd.Args = cli.MoreArgs(1, &update, &f.input)
	cmd.Long = cmd.Short + `.

NAME is an update handler of the instance's code. Its validator accepts or rejects the update, then the handler
runs. The command waits for the result and prints it as JSON. INPUT is JSON, @FILE, or - for stdin (default:
null). A paused or blocked instance processes the update when it continues. Updates with the same --update-id
run once, and return the same result for 30 days.

If --timeout expires first, the command exits with code 4 and the update continues.`
	cmd.Example = `  perdure update order-7 address '{"street": "Main St 5"}'
  perdure update order-7 approve --update-id approve-99 --timeout 30s`
	f.add(cmd, "update")
	return cmd
}

// updateFlags are the input and the flags of update and call.
type updateFlags struct {
	input, id string
	timeout   time.Duration
}

func (f *updateFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.id, "update-id", "", "ID of the "+what+", for deduplication (default: generated)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, flagvalue.TimeoutUsage)
}

// run sends an update with the input, and prints the response with its result.
func (f *updateFlags) run(
	ctx context.Context, env *cli.Env, cmd *cobra.Command, u httpapi.UpdateResponse,
	send func(ctx context.Context, input any, opts ...client.UpdateOption) (json.RawMessage, error),
) error {
	input, err := env.ReadInput(f.input)
	if err != nil {
		return err
	}
	var opts []client.UpdateOption
	if cmd.Flags().Changed("update-id") {
		opts = append(opts, client.WithUpdateID(f.id))
	}
	limited, cancel := flagvalue.WithTimeout(ctx, f.timeout)
	defer cancel()
	u.UpdateID = f.id
	u.Result, err = send(limited, input, opts...)
	return printUpdated(env, u, err)
}

// printUpdated prints the result of an update. If there is no result yet, it returns an error with the command that
// waits for the result.
func printUpdated(env *cli.Env, u httpapi.UpdateResponse, err error) error {
	text := string(u.Result)
	e, ok := errors.AsType[*client.UpdateError](err)
	switch {
	case ok && e.Code == client.UpdatePending:
		return stillUpdating(env, u, e, err)
	case ok && e.Code == client.UpdateResultEncoded:
		u.UpdateID, u.EncodedResult, text = e.UpdateID, e.EncodedResult, describe.EncodedPayload(e.EncodedResult)
	case err != nil:
		return err
	}
	return env.PrintResult(u, text+"\n")
}

// stillUpdating returns the error of an update without a result, with the command that waits for the result. With
// --json, it also prints the update.
func stillUpdating(env *cli.Env, u httpapi.UpdateResponse, e *client.UpdateError, err error) error {
	if u.UpdateID, u.Status = e.UpdateID, e.Status; env.JSON {
		if err := env.PrintJSON(u); err != nil {
			return err
		}
	}
	again := fmt.Sprintf("the instance is %s and the update continues; to wait for it, run "+
		"perdure update %s %s --update-id %s", e.Status, e.InstanceID, e.Update, e.UpdateID)
	if errors.Is(err, context.DeadlineExceeded) {
		return &cli.ExitError{Code: cli.CodeTimeout, Text: "timed out; " + again}
	}
	return &cli.ExitError{Code: cli.CodeError, Text: "interrupted; " + again}
}
