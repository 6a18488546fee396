package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func restartVerb(c *command) *cobra.Command {
	var id, version string
	var delay time.Duration
	var from int64
	var wait bool
	var cmd *cobra.Command
	cmd = c.verb("restart ID", "Start once more what is over, and print the new instance's id", argID, func(ctx context.Context, cl *client.Client, old string) error {
		opts := []client.StartOption{client.WithDelay(delay)}
		if cmd.Flags().Changed("id") {
			opts = append(opts, client.WithInstanceID(id))
		}
		if cmd.Flags().Changed("version") {
			opts = append(opts, client.WithVersion(version))
		}
		if cmd.Flags().Changed("from") {
			opts = append(opts, client.FromEvent(from))
		}
		restarted, err := cl.Restart(ctx, old, opts...)
		if err != nil {
			return err
		}
		return started(ctx, c, cl, httpapi.NewStarted(restarted), wait)
	})
	cmd.Long = cmd.Short + `.

The new instance begins with the input, the version and the tags of the last execution. What the old one has
done is not undone, and is done again; it stays as it is, with its history.

With --from EVENT it takes over that execution's history up to the event, which perdure history numbers.
What had ended by then is not done again; what was under way is, with its time limits from now on. If the
event came from outside, such as an activity's result, the code of today takes it anew: after a bug is
mended, restart from the last event that the bug fell over. A child that was under way and was given its
id must be purged before.

One end is restarted once from each event: a repetition prints the same id. With another --id there is
another instance. perdure history of the new one shows where it came from, as ExecutionRestarted.`
	cmd.Example = `  perdure restart order-7
  perdure restart order-7 --from 12
  perdure restart order-7 --id order-7-again --version 2 --wait`
	cmd.Flags().StringVar(&id, "id", "", "the id of the new instance (default: the old one with .restart- and eight digits)")
	cmd.Flags().StringVar(&version, "version", "", "another version of the orchestration; empty is the highest")
	cmd.Flags().Int64Var(&from, "from", 0, "take over the history up to the event of this number, and go on from there")
	cmd.Flags().DurationVar(&delay, "delay", 0, "wait this long before the first turn, such as 90s or 24h")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end, and exit as perdure wait does")
	return cmd
}
