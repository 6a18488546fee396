package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func raiseVerb(c *command) *cobra.Command {
	var data, eventID, event string
	var cmd *cobra.Command
	cmd = c.verb("raise ID EVENT", "Send an external event to an instance", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			payload, err := readInput(c, data)
			if err != nil {
				return err
			}
			var opts []client.RaiseOption
			if cmd.Flags().Changed("event-id") {
				opts = append(opts, client.WithEventID(eventID))
			}
			if err := cl.Raise(ctx, id, event, payload, opts...); err != nil {
				return err
			}
			return c.accepted(id)
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("an instance id and the event's name are wanted: %s", cmd.UseLine())
		}
		event = args[1]
		return nil
	}
	cmd.Example = `  perdure raise order-7 approved --data '{"by": "ann"}'
  perdure raise order-7 paid --data @payment.json --event-id payment-99`
	cmd.Flags().StringVar(&data, "data", "null", "the event's data: JSON, @FILE, or - for stdin")
	cmd.Flags().StringVar(&eventID, "event-id", "", "the event's id: raised again with it, it is the same event")
	return cmd
}

func cancelVerb(c *command) *cobra.Command {
	var message string
	var activity int64
	var cmd *cobra.Command
	cmd = c.verb("cancel ID", "Ask an instance, or one of its activities, to end", argID,
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

The instance's code sees the cancellation wherever it waits, and unwinds: what it compensates is
compensated. Meanwhile the instance is Cancelling, and then Cancelled. To end it at once, without
running its code, there is perdure terminate.

With --activity it is one activity of the current execution that ends: the code that waits for it
sees the cancellation, and goes on. perdure history shows the activities, each by the number of
the event that scheduled it.`
	cmd.Example = `  perdure cancel order-7 --message "customer withdrew"
  perdure cancel order-7 && perdure wait order-7
  perdure cancel order-7 --activity 12 --message "carrier is down"`
	cmd.Flags().Int64Var(&activity, "activity", 0, "cancel only this activity: the number of the event that scheduled it")
	cmd.Flags().StringVar(&message, "message", "", "why, for the code and for those who find it cancelled")
	completeWith[string](cmd, "activity")
	cmd.Long += `

With a filter instead of an ID the task hub cancels many, in the background: perdure jobs shows how
far it is.`
	c.bulk(cmd, client.OperationCancel, func(b *client.Bulk) { b.Message = message })
	onlyOfOne(cmd, "activity", "")
	return cmd
}

func terminateVerb(c *command) *cobra.Command {
	var message string
	cmd := c.verb("terminate ID", "End an instance at once, without running its code", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			if err := cl.Terminate(ctx, id, message); err != nil {
				return err
			}
			return c.accepted(id)
		})
	cmd.Long = cmd.Short + `.

Nothing is compensated. Its activities, timers and children are cancelled. To let its code unwind
instead, there is perdure cancel.`
	cmd.Example = `  perdure terminate order-7 --message "placed twice"`
	cmd.Flags().StringVar(&message, "message", "", "why, for those who find it terminated")
	cmd.Long += `

With a filter instead of an ID the task hub terminates many, in the background: perdure jobs shows
how far it is.`
	c.bulk(cmd, client.OperationTerminate, func(b *client.Bulk) { b.Message = message })
	return cmd
}

// accepted prints nothing without --json: a message that was accepted needs no words.
func (c *command) accepted(id string) error {
	if c.json {
		return c.printJSON(httpapi.Accepted{InstanceID: id})
	}
	return nil
}
