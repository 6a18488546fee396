package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/jobfilter"
)

// Cancel returns the command cancel.
func Cancel(env *cli.Env) *cobra.Command {
	var message string
	var activity int64
	var cmd *cobra.Command
	cmd = env.ClientCommand("cancel [ID]", "Cancel instances or one activity", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			var err error
			if cmd.Flags().Changed("activity") {
				err = cl.CancelActivity(ctx, id, activity, message)
			} else {
				err = cl.Cancel(ctx, id, message)
			}
			if err != nil {
				return err
			}
			return env.PrintAccepted(id)
		})
	cmd.Long = cmd.Short + `.

The code observes the cancellation at its current or next wait, and can clean up. The status is Cancelling
until the code ends. perdure terminate ends an instance without running its code.

With --activity, the command cancels one activity of the current execution, and the instance continues.
perdure history shows the event ID of each activity.`
	cmd.Example = `  perdure cancel order-7 --message "customer withdrew"
  perdure cancel order-7 && perdure wait order-7
  perdure cancel order-7 --activity 12 --message "carrier is down"`
	cmd.Flags().Int64Var(&activity, "activity", 0, "event ID of a single activity to cancel")
	cmd.Flags().StringVar(&message, "message", "", "reason, available to the code and in the history")
	cli.CompleteFlag[string](cmd, "activity")
	cmd.Long += jobfilter.Help("cancels")
	jobfilter.Add(env, cmd, admin.OperationCancel, func(b *admin.JobRequest) { b.Message = message })
	flagvalue.RequireID(cmd, "activity", "")
	return cmd
}
