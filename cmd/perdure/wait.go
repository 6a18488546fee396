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

func (c *command) waitVerb() *cobra.Command {
	var timeout time.Duration
	cmd := c.verb("wait ID", "Wait until an instance is over and show how it ended", "ID",
		func(ctx context.Context, cl *client.Client, id string) error { return c.wait(ctx, cl, id, timeout) })
	cmd.Long = cmd.Short + ".\n\nExits 0 when it completed, 2 when it failed, 3 when it was cancelled or terminated, 4 on timeout, and 1 otherwise."
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long, such as 30s (default: never)")
	return cmd
}

func (c *command) wait(ctx context.Context, cl *client.Client, id string, timeout time.Duration) error {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	s, err := cl.Wait(limited, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return &exit{exitError, "interrupted; the instance goes on: wait on with perdure wait " + id}
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		return c.timedOut(s, id, timeout)
	case err != nil:
		return err
	}
	if err := c.printResult(s); err != nil {
		return err
	}
	if code := exitCode(s.Status); code != exitCompleted {
		return &exit{code: code}
	}
	return nil
}

func (c *command) timedOut(s client.Status, id string, timeout time.Duration) error {
	if c.json && s.InstanceID != "" { // else not even the first look was made in time
		if err := c.printJSON(httpapi.NewEnvelope(s)); err != nil {
			return err
		}
	}
	return &exit{exitTimeout, fmt.Sprintf("not over after %s; the instance goes on: see perdure history %s", timeout, id)}
}

func (c *command) printResult(s client.Status) error {
	if c.json {
		return c.printJSON(httpapi.NewEnvelope(s))
	}
	return c.print(describe(s))
}

func exitCode(s client.RuntimeStatus) int {
	switch s {
	case client.StatusCompleted:
		return exitCompleted
	case client.StatusFailed:
		return exitFailed
	case "Cancelled", "Terminated":
		return exitCancelled
	default:
		return exitError
	}
}
