package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func restartVerb(c *command) *cobra.Command {
	var id, version string
	var delay time.Duration
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
		restarted, err := cl.Restart(ctx, old, opts...)
		if err != nil {
			return err
		}
		return started(ctx, c, cl, restarted, wait)
	})
	cmd.Long = cmd.Short + `.

The new instance begins with the input, the version and the tags of the last execution. What the old one has
done is not undone, and is done again; it stays as it is, with its history.

One end is restarted once: a repetition prints the same id. With another --id there is another instance.`
	cmd.Example = `  perdure restart order-7
  perdure restart order-7 --id order-7-again --version 2 --wait`
	cmd.Flags().StringVar(&id, "id", "", "the id of the new instance (default: the old one with .restart- and eight digits)")
	cmd.Flags().StringVar(&version, "version", "", "another version of the orchestration; empty is the highest")
	cmd.Flags().DurationVar(&delay, "delay", 0, "wait this long before the first turn, such as 90s or 24h")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end, and exit as perdure wait does")
	return cmd
}
