package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/jobfilter"
)

// Terminate returns the command terminate.
func Terminate(env *cli.Env) *cobra.Command {
	var message string
	cmd := env.ClientCommand("terminate [ID]", "End instances without cleanup", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			if err := cl.Terminate(ctx, id, message); err != nil {
				return err
			}
			return env.PrintAccepted(id)
		})
	cmd.Long = cmd.Short + `.

The instance ends immediately. Its code does not run, so nothing is compensated. Its activities, timers and
children are cancelled. Use perdure cancel to let its code clean up.`
	cmd.Example = `  perdure terminate order-7 --message "placed twice"`
	cmd.Flags().StringVar(&message, "message", "", "reason, stored in the history")
	cmd.Long += jobfilter.Help("terminates")
	jobfilter.Add(env, cmd, admin.OperationTerminate, func(b *admin.JobRequest) { b.Message = message })
	return cmd
}
