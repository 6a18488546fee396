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
	cmd = c.verb("call ENTITY KEY OPERATION [INPUT]", "Call an entity operation", argName,
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
			return printUpdated(c, httpapi.UpdateResponse{InstanceID: perdure.EntityInstanceID(entity, key), Update: operation, UpdateID: callID, Result: result}, ofEntity(c, entity, err))
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const least, most = 3, 4
		if len(args) < least || len(args) > most {
			return fmt.Errorf("expected 3 or 4 arguments; usage: %s", cmd.UseLine())
		}
		key, operation = args[1], args[2]
		if len(args) == most {
			input = args[3]
		}
		return nil
	}
	cmd.Long = cmd.Short + `.

The command waits for the result and prints it as JSON. The first call of a KEY creates the entity.
Operations of one key run one at a time, in the order of their arrival. INPUT is JSON, @FILE, or - for stdin
(default: null). The entity is the instance @ENTITY@KEY, which other commands can show, pause and purge. A
repeated call with the same --update-id runs the operation once.

If --timeout expires first, the command exits with code 4 and the call continues.`
	cmd.Example = `  perdure call account ann deposit 50
  perdure call account ann deposit 50 --update-id payment-99 --timeout 30s`
	cmd.Flags().StringVar(&callID, "update-id", "", "ID of the call, for deduplication (default: generated)")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, timeoutUsage)
	return cmd
}

func stateVerb(c *command) *cobra.Command {
	key := ""
	cmd := c.verb("state ENTITY KEY", "Show an entity's state", argName,
		func(ctx context.Context, cl *client.Client, entity string) error {
			state, err := cl.EntityState(ctx, entity, key)
			switch {
			case err != nil:
				return ofEntity(c, entity, err)
			case c.json:
				id := perdure.EntityInstanceID(entity, key)
				return c.printJSON(httpapi.EntityState{Entity: entity, Key: key, InstanceID: id, State: state})
			default:
				return c.print(string(state) + "\n")
			}
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		const both = 2
		if len(args) != both {
			return fmt.Errorf("expected 2 arguments; usage: %s", cmd.UseLine())
		}
		key = args[1]
		return nil
	}
	cmd.Long = cmd.Short + `.

The state after the last operation is printed as JSON. The command requires permission to invoke the hub's
orchestrator function.`
	cmd.Example = `  perdure state account ann`
	return cmd
}

// ofEntity replaces errors about an instance by errors about an entity.
func ofEntity(c *command, entity string, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return &exit{exitError, fmt.Sprintf("no build deployed to hub %q has entity %q; check the spelling, "+
			"or deploy it and retry after a moment", c.hub, entity)}
	case errors.Is(err, client.ErrNotFound):
		return &exit{exitError, fmt.Sprintf("key of entity %q not found in hub %q; the first call creates it, "+
			"and perdure list --name @%s lists all keys", entity, c.hub, entity)}
	default:
		return err
	}
}
