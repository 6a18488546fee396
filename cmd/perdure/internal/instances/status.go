package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/httpapi"
)

// Status returns the command status.
func Status(env *cli.Env) *cobra.Command {
	var limit int
	var pending bool
	cmd := env.ClientCommand("status ID", "Show an instance's status", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return showStatus(ctx, env, cl, id, pending, limit)
		})
	cmd.Long = cmd.Short + `.

The command reads the tasks that the instance waits for from its history. Failure shows why an instance is
Failed or Blocked. perdure list --help explains each status. A wait for an event that the code no longer
needs is listed until the event arrives. Next shows the most important step, with its command.

  Updated    time of the last change of the status or the custom status, not of attempts
  ATTEMPT    current attempt, which is due, queued or running, and the limit of the retry policy
  AGE        time since the task was scheduled
  NEXT       time until the next attempt, or until the task is due
  STATUS     status of a child, or progress of an activity. Only the first 10 children are read, which
             costs one read each, and one more for a child that has ended.`
	cmd.Example = `  perdure status order-7
  perdure status order-7 --limit 1000 --json | jq '.pending.items[] | select(.lastError)'
  perdure status order-7 --pending=false --json | jq .customStatus`
	cmd.Flags().BoolVar(&pending, "pending", true, "list of pending tasks, which are read from the history")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of pending tasks, 1 to 1000")
	return cmd
}

func showStatus(ctx context.Context, env *cli.Env, cl *client.Client, id string, pending bool, limit int) error {
	if err := flagvalue.CheckLimit(limit); err != nil {
		return err
	}
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	shown := httpapi.Instance{Status: s}
	if pending {
		shown.Pending, err = httpapi.ReadPending(ctx, cl, s, limit)
	}
	if env.JSON {
		return env.PrintJSON(shown)
	}
	children := describe.ReadChildren(ctx, cl, shown.Pending)
	return env.Print(describe.Status(s) + describe.Blocked(&s, shown.Pending) +
		describe.Pending(shown.Pending, children, err) + describe.NextSteps(env, &s, shown.Pending, children))
}
