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

func waitVerb(c *command) *cobra.Command {
	var timeout time.Duration
	started := false
	cmd := c.verb("wait ID", "Wait for an instance to end", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			if started {
				return waitForStart(ctx, c, cl, id, timeout)
			}
			return c.wait(ctx, cl, id, timeout)
		})
	cmd.Long = cmd.Short + `.

The command prints the status of the ended instance. With --started, it waits until the first turn has run, or
cannot run because the instance is paused or blocked, prints the status and exits with code 0.

Exit codes:
  0  completed
  1  error
  2  failed
  3  cancelled or terminated
  4  --timeout expired`
	cmd.Example = `  perdure wait order-7
  perdure wait order-7 --started --timeout 10s
  perdure wait order-7 --timeout 30s --json | jq .output`
	cmd.Flags().DurationVar(&timeout, "timeout", 0, timeoutUsage)
	cmd.Flags().BoolVar(&started, "started", false, "wait for the first turn instead of the end")
	return cmd
}

func (c *command) wait(ctx context.Context, cl *client.Client, id string, timeout time.Duration) error {
	limited, cancel := withTimeout(ctx, timeout)
	defer cancel()
	stop := progress(limited, c, cl, id)
	s, err := cl.Wait(limited, id)
	stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted("wait", id)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		if err := c.printStanding(s); err != nil {
			return err
		}
		return timedOut(id, timeout)
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

func waitForStart(ctx context.Context, c *command, cl *client.Client, id string, timeout time.Duration) error {
	limited, cancel := withTimeout(ctx, timeout)
	defer cancel()
	s, err := cl.WaitForStart(limited, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted("wait", id)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		if err := c.printStanding(s); err != nil {
			return err
		}
		return &exit{
			exitTimeout,
			fmt.Sprintf("instance has not started after %s; check its start time and that an orchestrator "+
				"is deployed, see perdure status %s", timeout, id),
		}
	case err != nil:
		return err
	default:
		return c.printResult(s)
	}
}

// withTimeout returns ctx, with a timeout if there is one.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

func interrupted(verb, id string) error {
	return &exit{exitError, fmt.Sprintf("interrupted; the instance continues, repeat perdure %s %s", verb, id)}
}

func timedOut(id string, timeout time.Duration) error {
	text := fmt.Sprintf("instance has not ended after %s and continues; see perdure history %s", timeout, id)
	return &exit{exitTimeout, text}
}

// printStanding prints the status of the instance at the timeout with --json.
func (c *command) printStanding(s client.Status) error {
	if !c.json || s.InstanceID == "" { // not even the first read was made in time
		return nil
	}
	return c.printJSON(httpapi.NewResultResponse(s))
}

func (c *command) printResult(s client.Status) error {
	if c.json {
		return c.printJSON(httpapi.NewResultResponse(s))
	}
	return c.print(describe(s))
}

func exitCode(s client.RuntimeStatus) int {
	switch s {
	case client.StatusCompleted:
		return exitCompleted
	case client.StatusFailed:
		return exitFailed
	case client.StatusCancelled, client.StatusTerminated:
		return exitCancelled
	default:
		return exitError
	}
}
