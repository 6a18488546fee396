package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func updateVerb(c *command) *cobra.Command {
	update, input, updateID := "", noInput, ""
	var timeout time.Duration
	var cmd *cobra.Command
	cmd = c.verb("update ID NAME [INPUT]", "Ask an instance's code to change something, and wait for its answer", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			payload, err := readInput(c, input)
			if err != nil {
				return err
			}
			var opts []client.UpdateOption
			if cmd.Flags().Changed("update-id") {
				opts = append(opts, client.WithUpdateID(updateID))
			}
			limited, cancel := withTimeout(ctx, timeout)
			defer cancel()
			result, err := cl.Update(limited, id, update, payload, opts...)
			return printUpdated(c, httpapi.Updated{InstanceID: id, Update: update, UpdateID: updateID, Result: result}, err)
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 || len(args) > 3 {
			return fmt.Errorf("an instance id and the update's name are wanted, and perhaps its input: %s", cmd.UseLine())
		}
		update = args[1]
		if len(args) == 3 {
			input = args[2]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

Its code has set a handler for updates of that NAME. Its validator accepts or rejects the update; then
the handler runs, and what it returns is printed as JSON. INPUT is what it takes: JSON, @FILE, or - for
stdin; without it, null. An instance that is paused or blocked takes the update when it goes on.

Sent again with the same --update-id it is the same update: it is taken once, and the answer is the
same, for 30 days. Exits 4 when --timeout was over first: the update goes on.`
	cmd.Example = `  perdure update order-7 address '{"street": "Main St 5"}'
  perdure update order-7 approve --update-id approve-99 --timeout 30s`
	cmd.Flags().StringVar(&updateID, "update-id", "", "the update's id: sent again with it, it is the same update")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, such as 30s (default: never)")
	return cmd
}

// printUpdated prints what an update came to: its result, or as far as there is one. One that has none yet goes on: the id leads back to it.
func printUpdated(c *command, u httpapi.Updated, err error) error {
	text := string(u.Result)
	e, told := errors.AsType[*client.UpdateError](err)
	switch {
	case told && e.Code == client.UpdatePending:
		return stillUpdating(c, u, e, err)
	case told && e.Code == client.UpdateSealed:
		u.UpdateID, u.ResultSealed, text = e.UpdateID, e.Sealed, sealedText(e.Sealed)
	case err != nil:
		return err
	}
	if c.json {
		return c.printJSON(u)
	}
	return c.print(text + "\n")
}

func stillUpdating(c *command, u httpapi.Updated, e *client.UpdateError, err error) error {
	if u.UpdateID, u.Status = e.UpdateID, e.Status; c.json {
		if err := c.printJSON(u); err != nil {
			return err
		}
	}
	again := fmt.Sprintf("the instance is %s, and the update goes on: wait on with perdure update %s %s --update-id %s", e.Status, e.InstanceID, e.Update, e.UpdateID)
	if errors.Is(err, context.DeadlineExceeded) {
		return &exit{exitTimeout, "no answer in time; " + again}
	}
	return &exit{exitError, "interrupted; " + again}
}
