package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func callVerb(c *command) *cobra.Command {
	key, operation, input, callID := "", "", noInput, ""
	var timeout time.Duration
	var cmd *cobra.Command
	cmd = c.verb("call ENTITY KEY OPERATION [INPUT]", "Call an operation of an entity, and wait for its result", argName,
		func(ctx context.Context, cl *client.Client, entity string) error {
			payload, err := readInput(c, input)
			if err != nil {
				return err
			}
			var opts []client.UpdateOption
			if cmd.Flags().Changed("update-id") {
				opts = append(opts, client.WithUpdateID(callID))
			}
			limited, cancel := withTimeout(ctx, timeout)
			defer cancel()
			result, err := cl.CallEntity(limited, entity, key, operation, payload, opts...)
			return printUpdated(c, httpapi.Updated{InstanceID: perdure.EntityInstanceID(entity, key), Update: operation, UpdateID: callID, Result: result}, ofEntity(c, entity, err))
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const least, most = 3, 4
		if len(args) < least || len(args) > most {
			return fmt.Errorf("an entity, a key and the operation's name are wanted, and perhaps its input: %s", cmd.UseLine())
		}
		key, operation = args[1], args[2]
		if len(args) == most {
			input = args[3]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

The first call of a KEY makes the entity. Operations of one key run one at a time, in the order in which
they arrive; the result is printed as JSON. INPUT is what the operation takes: JSON, @FILE, or - for stdin;
without it, null. A key is the instance @ENTITY@KEY, which other commands show, pause and purge.

Sent again with the same --update-id it is the same call. Exits 4 when --timeout was over first: the call
goes on.`
	cmd.Example = `  perdure call account ann deposit 50
  perdure call account ann deposit 50 --update-id payment-99 --timeout 30s`
	cmd.Flags().StringVar(&callID, "update-id", "", "the call's id: sent again with it, it is the same call")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, such as 30s (default: never)")
	return cmd
}

func stateVerb(c *command) *cobra.Command {
	key := ""
	cmd := c.verb("state ENTITY KEY", "Show the state of an entity", argName, func(ctx context.Context, cl *client.Client, entity string) error {
		state, err := cl.EntityState(ctx, entity, key)
		switch {
		case err != nil:
			return ofEntity(c, entity, err)
		case c.json:
			return c.printJSON(httpapi.EntityState{Entity: entity, Key: key, InstanceID: perdure.EntityInstanceID(entity, key), State: state})
		default:
			return c.print(string(state) + "\n")
		}
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const both = 2
		if len(args) != both {
			return fmt.Errorf("an entity and a key are wanted: %s", cmd.UseLine())
		}
		key = args[1]
		return nil
	}
	cmd.Long = cmd.Short + `, as its last operation has left it, as JSON.

It takes the right to invoke the hub's orchestrator function.`
	cmd.Example = `  perdure state account ann`
	return cmd
}

// ofEntity says of an entity what would be said of an instance.
func ofEntity(c *command, entity string, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return &exit{exitError, fmt.Sprintf("no build deployed to hub %q knows the entity %q: check the spelling, or deploy it; one deployed just now is known within moments", c.hub, entity)}
	case errors.Is(err, client.ErrNotFound):
		return &exit{exitError, fmt.Sprintf("this key of entity %q has no state in hub %q: its first call makes it; perdure list --name @%s shows those there are", entity, c.hub, entity)}
	default:
		return err
	}
}
