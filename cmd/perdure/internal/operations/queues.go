package operations

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// Queues returns the command queues.
func Queues(env *cli.Env) *cobra.Command {
	cmd := env.AdminCommand("queues", "List queues and their workers", "",
		func(ctx context.Context, a *admin.Client, _ string) error {
			found, err := a.Queues(ctx)
			if err != nil {
				return err
			}
			return env.PrintResult(httpapi.NewQueueList(found), QueueTable(found, env.Now()))
		})
	cmd.Long = cmd.Short + `.

The table has the approximate number of work items and dead letters of each queue, and the last report of its
workers. A worker reports when it starts, and every five minutes while it receives work items. A queue without
work may have no recent report. The command does not show delayed work items, such as retries.`
	cmd.Example = "  perdure queues"
	return cmd
}

// QueueTable returns a table of queues. A line below a queue with work items and without a worker has the fix.
func QueueTable(queues []admin.Queue, now time.Time) string {
	t := term.Table{Header: []string{"QUEUE", ">WORK ITEMS", ">DEAD LETTERS", "WORKER REPORTED", "BUILD"}}
	for i := range queues {
		q := &queues[i]
		reported, build := "", ""
		switch {
		case q.Worker != nil:
			reported = term.Duration(now.Sub(q.Worker.LastReportedAt)) + " ago"
			build = term.BuildID(q.Worker.BuildID)
		case q.Depth != nil:
			reported = "never"
		}
		t.Add(term.Excerpt(q.Name, term.MaxName), number(q.Depth), number(q.DeadLetters), term.OrDash(reported),
			term.OrDash(build))
		if q.NoWorker {
			t.Note("no worker: deploy a worker for the queue, or find its failed start in its log")
		}
	}
	return t.String()
}

func number(n *int) string {
	if n == nil {
		return term.OrDash("")
	}
	return strconv.Itoa(*n)
}
