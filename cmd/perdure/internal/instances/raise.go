package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Raise returns the command raise.
func Raise(env *cli.Env) *cobra.Command {
	var data, eventID, event string
	var cmd *cobra.Command
	cmd = env.ClientCommand("raise ID EVENT", "Send an external event", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			payload, err := env.ReadInput(data)
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
			return env.PrintAccepted(id)
		})
	cmd.Args = cli.MoreArgs(0, &event)
	cmd.Long = cmd.Short + ` to an instance.

Events with the same --event-id are delivered once.`
	cmd.Example = `  perdure raise order-7 approved --data '{"by": "ann"}'
  perdure raise order-7 paid --data @payment.json --event-id payment-99`
	cmd.Flags().StringVar(&data, "data", "null", "data of the event: JSON, @FILE, or - for stdin")
	cmd.Flags().StringVar(&eventID, "event-id", "", "ID of the event, for deduplication (default: generated)")
	return cmd
}
