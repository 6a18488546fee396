package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

// noInput is what is given where nothing is.
const noInput = "null"

func queryVerb(c *command) *cobra.Command {
	query, input := "", noInput
	cmd := c.verb("query ID NAME [INPUT]", "Ask an instance's code something", argID, func(ctx context.Context, cl *client.Client, id string) error {
		payload, err := readInput(c, input)
		if err != nil {
			return err
		}
		answer, err := cl.Query(ctx, id, query, payload)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(httpapi.Answered{InstanceID: id, Query: query, Answer: answer})
		default:
			return c.print(string(answer) + "\n")
		}
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 || len(args) > 3 {
			return fmt.Errorf("an instance id and the query's name are wanted, and perhaps its input: %s", cmd.UseLine())
		}
		query = args[1]
		if len(args) == 3 {
			input = args[2]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

Its code has set a handler for queries of that NAME. The orchestrator function replays the instance and
calls it, whether the instance runs, is paused, is blocked or is over; nothing is added to its history. The answer is
printed as JSON. INPUT is what the handler takes: JSON, @FILE, or - for stdin; without it, null.

It takes the right to invoke the hub's orchestrator function.`
	cmd.Example = `  perdure query order-7 progress
  perdure query order-7 total '{"currency": "EUR"}'`
	return cmd
}
