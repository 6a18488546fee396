package instances

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// Why returns the command why.
func Why(env *cli.Env) *cobra.Command {
	var p client.Paging
	var execution string
	cmd := env.ClientCommand("why ID", "Show what was cancelled and why", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return showCancellations(ctx, env, cl, id, execution, p)
		})
	cmd.Long = cmd.Short + `.

  CANCELLED     time of the cancellation since the start of the execution
  REQUESTED BY  the orchestration's code (body), the engine (for the end of a scope or an execution), a
                parent, an IAM identity, or client for an unknown caller
  REASON        cancel reason and message
  OBSERVED      time until the worker observed the cancellation, — if unknown
  OUTCOME       how the work ended. An abandoned activity ignored its context beyond its grace period, and
                its worker stopped waiting for it.

The outcome of an activity is unknown while it waits in a queue, or if its worker died. With
WaitForCancellation, the loss of a worker is reported when its lease expires.`
	cmd.Example = `  perdure why order-7
  perdure why poller --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S`
	cmd.Flags().StringVar(&execution, "execution", "", "execution ID (default: the current one)")
	flagvalue.AddPaging(cmd, &p, 50)
	return cmd
}

func showCancellations(
	ctx context.Context, env *cli.Env, cl *client.Client, id, execution string, p client.Paging,
) error {
	if err := flagvalue.CheckLimit(p.Limit); err != nil {
		return err
	}
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	if execution == "" {
		execution = s.ExecutionID
	}
	page, err := cl.CancellationsPage(ctx, id, execution, p)
	if errors.Is(err, client.ErrNotFound) {
		return NoExecution(s, execution)
	}
	if err != nil {
		return err
	}
	return env.PrintPage(httpapi.NewCancellationPage(page), CancellationsText(s, page), page.NextCursor)
}

// CancellationsText returns a page of the cancellations of an instance as text.
func CancellationsText(s client.Status, page client.CancellationPage) string {
	head := describe.InstanceHeader(s) +
		fmt.Sprintf("execution %s%s\n", term.Clean(page.ExecutionID), startedText(page.StartedAt))
	head += callerLine("started", s.StartedBy) + callerLine("terminated", s.TerminatedBy)
	if p := s.Paused; p != nil {
		head += "paused " + term.Clean(describe.Pause(p)) + "\n"
	}
	if len(page.Items) == 0 {
		return head + "\nno cancellations" + insteadText(s) + "\n"
	}
	t := term.Table{Header: []string{
		">#", "TYPE", term.ColumnName, ">CANCELLED", "REQUESTED BY", "REASON", ">OBSERVED", "OUTCOME",
	}}
	for i := range page.Items {
		x := &page.Items[i]
		t.Add(term.Number(x.ID), strings.ReplaceAll(string(x.Target), "_", "-"),
			term.Excerpt(cancelledName(x), term.MaxName), sinceText(page.StartedAt, x.DecidedAt),
			term.Ending(term.OrDash(describe.ShortIdentity(x.RequestedBy)), term.MaxName),
			term.Excerpt(reasonText(x), term.MaxDetail), observedText(x), outcomeText(x))
	}
	return head + "\n" + t.String()
}

// startedText returns the start time of an execution, or "" if the time is unknown.
func startedText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", started " + term.Time(at)
}

// callerLine returns a line with the caller of an operation, or "" if the caller is unknown.
func callerLine(what, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s by %s\n", what, term.Clean(name))
}

// insteadText describes the failure of an instance without cancellations. If the instance has not ended, it names the
// command that lists the pending tasks.
func insteadText(s client.Status) string {
	var what string
	switch {
	case s.Status == client.StatusBlocked && s.Failure != nil:
		what = "the instance is blocked"
	case s.Status == client.StatusFailed && s.Failure != nil:
		what = "the instance failed"
	case s.Status.Terminal():
		return ""
	default:
		return "\nperdure status " + term.ShellQuote(s.InstanceID) + " lists the pending tasks"
	}
	text, _, _ := strings.Cut(describe.Failure(s.Failure), "\n")
	return fmt.Sprintf("; %s: %s\nsee perdure status %s and perdure history %[3]s",
		what, term.Excerpt(text, term.MaxDetail), term.Clean(s.InstanceID))
}

func cancelledName(x *client.Cancellation) string {
	if x.ChildID != "" {
		return x.Name + " " + x.ChildID
	}
	return x.Name
}

func reasonText(x *client.Cancellation) string {
	if x.Message == "" {
		return x.Reason
	}
	return fmt.Sprintf("%s %q", x.Reason, x.Message)
}

func observedText(x *client.Cancellation) string { return sinceText(x.DecidedAt, x.SeenAt) }

// sinceText returns the duration between two times, or a dash if one of them is unknown.
func sinceText(from, at time.Time) string {
	if from.IsZero() || at.IsZero() {
		return "—"
	}
	return "+" + term.Duration(at.Sub(from))
}

// outcomeText returns the outcome of cancelled work and, if known, the time until the work ended. The time starts when
// the worker observed the cancellation of an activity, or at the decision to cancel other work.
func outcomeText(x *client.Cancellation) string {
	from := x.SeenAt
	if from.IsZero() {
		from = x.DecidedAt
	}
	after := func(preposition string) string {
		if from.IsZero() || x.EndedAt.IsZero() {
			return ""
		}
		return preposition + term.Duration(x.EndedAt.Sub(from))
	}

	switch x.End {
	case "":
		return "not ended, or unknown"
	case client.OutcomeNeverStarted:
		return "never started"
	case client.OutcomeTimerRemoved:
		return "timer removed"
	case client.OutcomeStopped:
		return "stopped" + after(" in ")
	case client.OutcomeCompleted:
		return "completed anyway" + after(" after ")
	case client.OutcomeAbandoned:
		return "ABANDONED" + after(" after ")
	case client.OutcomeWorkerLost:
		return "worker lost" + after(", reported after ")
	case client.OutcomeTimedOut:
		return "timed out without a report" + after(" after ")
	case client.OutcomeNotCancellable:
		return "not cancelled: " + term.Excerpt(x.Error.Message, term.MaxDetail)
	default:
		return string(x.End) + after(" after ")
	}
}
