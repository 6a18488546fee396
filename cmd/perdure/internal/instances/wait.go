package instances

import (
	"cmp"
	"context"
	"errors"
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
until the instance is paused or blocked. It then prints the status and exits with code 0.

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
	wait := func(ctx context.Context, id string) (client.Status, error) {
		stop := showProgress(ctx, env, cl, id)
		defer stop()
		return cl.Wait(ctx, id)
	}
	s, err := waitAndPrint(ctx, env, id, timeout, wait, notEnded(id, timeout))
	if err != nil {
		return err
	}
	return exitError(s.Status)
}

func waitForStart(ctx context.Context, env *cli.Env, cl *client.Client, id string, timeout time.Duration) error {
	notStarted := cli.Exitf(cli.CodeTimeout, "instance has not started after %s; check its start time and that "+
		"an orchestrator is deployed, see perdure status %s", timeout, id)
	_, err := waitAndPrint(ctx, env, id, timeout, cl.WaitForStart, notStarted)
	return err
}

// waitAndPrint prints the status that wait returns. After the timeout, it returns timedOut, and with --json it also
// prints the last known status.
func waitAndPrint(
	ctx context.Context, env *cli.Env, id string, timeout time.Duration,
	wait func(ctx context.Context, id string) (client.Status, error), timedOut error,
) (client.Status, error) {
	limited, cancel := flagvalue.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := wait(limited, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return s, interrupted("wait", id)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		if env.JSON && s.InstanceID != "" { // the ID is empty if the first read did not finish
			return s, cmp.Or(env.PrintJSON(httpapi.NewResultResponse(s)), timedOut)
		}
		return s, timedOut
	case err != nil:
		return s, err
	}
	return s, env.PrintResult(httpapi.NewResultResponse(s), describe.Status(s))
}

func interrupted(verb, id string) error {
	return cli.Exitf(cli.CodeError, "interrupted; the instance continues, repeat perdure %s %s", verb, id)
}

func notEnded(id string, timeout time.Duration) error {
	return cli.Exitf(cli.CodeTimeout, "instance has not ended after %s and continues; see perdure history %s",
		timeout, id)
}

// exitError returns the error with the exit code for the status of an ended instance, or nil if it is completed.
func exitError(s client.RuntimeStatus) error {
	switch s {
	case client.StatusCompleted:
		return nil
	case client.StatusFailed:
		return &cli.ExitError{Code: cli.CodeFailed}
	case client.StatusCancelled, client.StatusTerminated:
		return &cli.ExitError{Code: cli.CodeCancelled}
	default:
		return &cli.ExitError{Code: cli.CodeError}
	}
}
