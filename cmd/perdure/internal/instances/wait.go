package instances

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/httpapi"
)

// Wait returns the command wait.
func Wait(env *cli.Env) *cobra.Command {
	var timeout time.Duration
	started := false
	cmd := env.ClientCommand("wait ID", "Wait for an instance to end", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			if started {
				return waitForStart(ctx, env, cl, id, timeout)
			}
			return waitForEnd(ctx, env, cl, id, timeout)
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
	cmd.Flags().DurationVar(&timeout, "timeout", 0, flagvalue.TimeoutUsage)
	cmd.Flags().BoolVar(&started, "started", false, "wait for the first turn instead of the end")
	return cmd
}

func waitForEnd(ctx context.Context, env *cli.Env, cl *client.Client, id string, timeout time.Duration) error {
	limited, cancel := flagvalue.WithTimeout(ctx, timeout)
	defer cancel()
	stop := showProgress(limited, env, cl, id)
	s, err := cl.Wait(limited, id)
	stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted("wait", id)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		if err := printAtTimeout(env, s); err != nil {
			return err
		}
		return timedOut(id, timeout)
	case err != nil:
		return err
	}
	if err := printResult(env, s); err != nil {
		return err
	}
	if code := exitCode(s.Status); code != cli.CodeOK {
		return &cli.ExitError{Code: code}
	}
	return nil
}

func waitForStart(ctx context.Context, env *cli.Env, cl *client.Client, id string, timeout time.Duration) error {
	limited, cancel := flagvalue.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := cl.WaitForStart(limited, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted("wait", id)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		if err := printAtTimeout(env, s); err != nil {
			return err
		}
		return cli.Exitf(cli.CodeTimeout, "instance has not started after %s; check its start time and that "+
			"an orchestrator is deployed, see perdure status %s", timeout, id)
	case err != nil:
		return err
	default:
		return printResult(env, s)
	}
}

func interrupted(verb, id string) error {
	return cli.Exitf(cli.CodeError, "interrupted; the instance continues, repeat perdure %s %s", verb, id)
}

func timedOut(id string, timeout time.Duration) error {
	text := fmt.Sprintf("instance has not ended after %s and continues; see perdure history %s", timeout, id)
	return &cli.ExitError{Code: cli.CodeTimeout, Text: text}
}

// printAtTimeout prints the last status that was read before the timeout, with --json.
func printAtTimeout(env *cli.Env, s client.Status) error {
	if !env.JSON || s.InstanceID == "" { // the first read did not finish
		return nil
	}
	return env.PrintJSON(httpapi.NewResultResponse(s))
}

func printResult(env *cli.Env, s client.Status) error {
	if env.JSON {
		return env.PrintJSON(httpapi.NewResultResponse(s))
	}
	return env.Print(describe.Status(s))
}

func exitCode(s client.RuntimeStatus) int {
	switch s {
	case client.StatusCompleted:
		return cli.CodeOK
	case client.StatusFailed:
		return cli.CodeFailed
	case client.StatusCancelled, client.StatusTerminated:
		return cli.CodeCancelled
	default:
		return cli.CodeError
	}
}
