package instances

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/httpapi"
)

// Restart returns the command restart.
func Restart(env *cli.Env) *cobra.Command {
	var id, version, key string
	var tags []string
	var delay time.Duration
	var from int64
	var wait bool
	var cmd *cobra.Command
	restart := func(ctx context.Context, cl *client.Client, old string) error {
		opts := []client.StartOption{client.WithDelay(delay)}
		if cmd.Flags().Changed("id") {
			opts = append(opts, client.WithInstanceID(id))
		}
		if cmd.Flags().Changed("version") {
			opts = append(opts, client.WithVersion(version))
		}
		if cmd.Flags().Changed("tag") {
			parsed, err := flagvalue.ParseTags(tags)
			if err != nil {
				return err
			}
			opts = append(opts, client.WithTags(parsed))
		}
		if cmd.Flags().Changed("idempotency-key") {
			opts = append(opts, client.WithIdempotencyKey(key))
		}
		if cmd.Flags().Changed("from-event") {
			opts = append(opts, client.FromEvent(from))
		}
		restarted, err := cl.Restart(ctx, old, opts...)
		if err != nil {
			return flagvalue.AsFlag(err, "from", "--from-event")
		}
		return started(ctx, env, cl, httpapi.NewStartResponse(restarted), wait)
	}
	cmd = env.ClientCommand("restart ID", "Restart a finished instance", cli.ArgID, restart)
	cmd.Long = cmd.Short + `.

The command starts a new instance with the input and tags of the last execution, and prints its ID. The new
instance runs the version that the start of the old one requested, or the highest version if it requested
none. The old instance and its history remain, and its work is not undone. A repeated restart of the same
instance prints the same ID. To restart it again, set --id and --idempotency-key.

With --from-event EVENT, the new instance starts with the version and the history up to that event. Completed
work is not repeated. Work in progress starts again with new timeouts. To recover from a bug, deploy the fix
and restart from the last event that the faulty code received. Before the restart, purge children in progress
if the code sets their IDs. In the history of the new instance, the event ExecutionRestarted shows its origin.`
	cmd.Example = `  perdure restart order-7
  perdure restart order-7 --from-event 12
  perdure restart order-7 --id order-7-again --version 2 --tag cause=fixed --wait`
	cmd.Flags().StringVar(&id, "id", "", "ID of the new instance (default: the old ID with .restart- and eight digits)")
	cmd.Flags().StringVar(&version, "version", "",
		"orchestration version, empty for the highest (default: the version that was requested)")
	cmd.Flags().Int64Var(&from, "from-event", 0, "ID of the last event to keep of the history")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "key for deduplication of starts of this orchestration")
	cmd.Flags().StringArrayVar(&tags, "tag", nil,
		"tag as KEY=VALUE; repeatable (default: the tags of the old instance)")
	cmd.Flags().DurationVar(&delay, "delay", 0, flagvalue.DelayUsage)
	cmd.Flags().BoolVar(&wait, "wait", false, flagvalue.WaitUsage)
	return cmd
}
