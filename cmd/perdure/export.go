package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func exportVerb(c *command) *cobra.Command {
	var execution string
	cmd := c.verb("export ID", "Print the history of an instance as a file that can be replayed elsewhere", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			s, err := cl.Status(ctx, id)
			if err != nil {
				return err
			}
			return c.printDocument(ctx, cl, s, execution)
		})
	cmd.Long = cmd.Short + `.

It is a document (perdure.history/1) of all executions, the oldest first, with every input, result and event
in it, as perdure history --json prints it: treat the file as the data that it holds. perdure import replays
it against a binary, without a hub; perduretest.Replay does in a unit test, under a debugger.`
	cmd.Example = `  perdure export order-7 --hub production > order-7.json
  perdure import order-7.json --binary dist/orchestrator`
	cmd.Flags().StringVar(&execution, "execution", "", "one execution alone (default: all; one may refer to documents of those before it)")
	return cmd
}
