package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func raiseVerb(c *command) *cobra.Command {
	var data, eventID, event string
	var cmd *cobra.Command
	cmd = c.verb("raise ID EVENT", "Send an external event", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			payload, err := readInput(c, data)
			if err != nil {
				return err
			}
			var opts []client.RaiseOption
			if cmd.Flags().Changed("event-id") {
				opts = append(opts, client.WithEventID(eventID))
			}
			if err := cl.RaiseEvent(ctx, id, event, payload, opts...); err != nil {
				return err
			}
			return c.accepted(id)
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("expected 2 arguments; usage: %s", cmd.UseLine())
		}
		event = args[1]
		return nil
	}
	cmd.Long = cmd.Short + ` to an instance.

Events with the same --event-id are delivered once.`
	cmd.Example = `  perdure raise order-7 approved --data '{"by": "ann"}'
  perdure raise order-7 paid --data @payment.json --event-id payment-99`
	cmd.Flags().StringVar(&data, "data", "null", "data of the event: JSON, @FILE, or - for stdin")
	cmd.Flags().StringVar(&eventID, "event-id", "", "ID of the event, for deduplication (default: generated)")
	return cmd
}

func cancelVerb(c *command) *cobra.Command {
	var message string
	var activity int64
	var cmd *cobra.Command
	cmd = c.verb("cancel [ID]", "Cancel instances or one activity", argID,
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
			return c.accepted(id)
		})
	cmd.Long = cmd.Short + `.

The instance's code observes the cancellation where it waits, and can clean up. Until it ends, the instance is
Cancelling. perdure terminate ends an instance without running its code.

With --activity, the command cancels one activity of the current execution, and the instance continues.
perdure history shows the event ID of each activity.`
	cmd.Example = `  perdure cancel order-7 --message "customer withdrew"
  perdure cancel order-7 && perdure wait order-7
  perdure cancel order-7 --activity 12 --message "carrier is down"`
	cmd.Flags().Int64Var(&activity, "activity", 0, "event ID of the only activity to cancel")
	cmd.Flags().StringVar(&message, "message", "", "reason, available to the code and in the history")
	completeWith[string](cmd, "activity")
	cmd.Long += bulkText("cancels")
	c.bulk(cmd, admin.OperationCancel, func(b *admin.JobRequest) { b.Message = message })
	onlyOfOne(cmd, "activity", "")
	return cmd
}

func terminateVerb(c *command) *cobra.Command {
	var message string
	cmd := c.verb("terminate [ID]", "End instances without cleanup", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			if err := cl.Terminate(ctx, id, message); err != nil {
				return err
			}
			return c.accepted(id)
		})
	cmd.Long = cmd.Short + `.

The instance ends immediately. Its code does not run, so nothing is compensated. Its activities, timers and
children are cancelled. Use perdure cancel to let its code clean up.`
	cmd.Example = `  perdure terminate order-7 --message "placed twice"`
	cmd.Flags().StringVar(&message, "message", "", "reason, stored in the history")
	cmd.Long += bulkText("terminates")
	c.bulk(cmd, admin.OperationTerminate, func(b *admin.JobRequest) { b.Message = message })
	return cmd
}

// accepted prints the response of an accepted message with --json, and nothing without.
func (c *command) accepted(id string) error {
	if c.json {
		return c.printJSON(httpapi.AcceptedResponse{InstanceID: id})
	}
	return nil
}
