package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func whyVerb(c *command) *cobra.Command {
	var limit int
	var execution, cursor string
	cmd := c.verb("why ID", "Show what was cancelled in an instance: who asked, why, and how it ended", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return c.why(ctx, cl, id, execution, limit, cursor)
		})
	cmd.Long = cmd.Short + `.

DECIDED is the time since the execution began at which the cancellation became history. BY is who
asked for it: the orchestration's code (body), the engine when a scope or the execution ended, a
parent, whose own why shows who asked it, or a caller: the IAM identity, of a role with the session.
client is a caller of which nothing is known. SEEN is how long it took until the worker saw it, and
ENDED how it ended then: never started, stopped, finished all the same, or leaked, which means that
its code ignored its context and its worker stopped waiting for it. An activity that still waits in a
queue has neither, nor has one whose worker died, unless its call asked for the end
(WaitForCancellation): then its end, once the worker's lease is over, is that the worker was gone, and
SEEN is when that worker saw the cancel, if it did. Where such a call is seen and has no end, the end
is still to come.`
	cmd.Example = `  perdure why order-7
  perdure why poller --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S`
	cmd.Flags().StringVar(&execution, "execution", "", "the execution (default: the current one)")
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most this many, up to 1000")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where a list of the same execution ended")
	return cmd
}

func (c *command) why(ctx context.Context, cl *client.Client, id, execution string, limit int, cursor string) error {
	if err := checkLimit(limit); err != nil {
		return err
	}
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	if execution == "" {
		execution = s.ExecutionID
	}
	page, err := cl.CancellationsPage(ctx, id, execution, client.Paging{Limit: limit, Cursor: cursor})
	if errors.Is(err, client.ErrNotFound) {
		return noExecution(s, execution)
	}
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewCancellations(page))
	}
	if err := c.print(describeWhy(s, page)); err != nil {
		return err
	}
	c.more(page.NextCursor)
	return nil
}

func describeWhy(s client.Status, page client.CancellationPage) string {
	head := fmt.Sprintf("%s  %s  %s\nexecution %s%s\n", clean(s.InstanceID), clean(strings.TrimSpace(s.Orchestration+" "+s.Version)), standing(s),
		clean(page.ExecutionID), startedText(page.StartedAt))
	head += byWhom("started", s.StartedBy) + byWhom("terminated", s.TerminatedBy)
	if p := s.Paused; p != nil {
		head += "paused " + clean(pausedText(p)) + "\n"
	}
	if len(page.Items) == 0 {
		return head + "\nnothing was cancelled" + instead(s) + "\n"
	}
	t := table{header: []string{">#", "WHAT", columnName, ">DECIDED", "BY", "WHY", ">SEEN", "ENDED"}}
	for i := range page.Items {
		x := &page.Items[i]
		t.add(strconv.FormatInt(x.ID, 10), strings.ReplaceAll(string(x.Target), "_", "-"), excerpt(cancelledName(x), longestName), sinceText(page.StartedAt, x.DecidedAt),
			ending(dash(shortARN(x.RequestedBy)), longestName), excerpt(reasonText(x), longestDetail), seenText(x), endText(x))
	}
	return head + "\n" + t.String()
}

// startedText says when an execution started, where that is known.
func startedText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", started " + moment(at)
}

// byWhom returns a line on who did something; empty where that is not known.
func byWhom(what, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s by %s\n", what, clean(name))
}

// instead returns what is wrong with an instance in which nothing was cancelled, and where that is shown.
func instead(s client.Status) string {
	var what string
	switch {
	case s.Failure == nil:
		return ""
	case s.Status == client.StatusBlocked:
		what = "it is blocked"
	case s.Status == client.StatusFailed:
		what = "it has failed"
	default:
		return ""
	}
	text, _, _ := strings.Cut(failureText(s.Failure), "\n")
	return fmt.Sprintf(", %s: %s\nperdure status %s shows all of it, and perdure history %[3]s how it came to that",
		what, excerpt(text, longestDetail), clean(s.InstanceID))
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

func seenText(x *client.Cancellation) string { return sinceText(x.DecidedAt, x.SeenAt) }

// sinceText returns how long after one time another was; a dash where one of them is not known.
func sinceText(from, at time.Time) string {
	if from.IsZero() || at.IsZero() {
		return "—"
	}
	return "+" + span(at.Sub(from))
}

// endText returns how something ended, and after how long where that is known. An activity's time counts from when its worker saw
// the cancel, any other from the decision.
func endText(x *client.Cancellation) string {
	from := x.SeenAt
	if from.IsZero() {
		from = x.DecidedAt
	}
	after := func(preposition string) string {
		if from.IsZero() || x.EndedAt.IsZero() {
			return ""
		}
		return preposition + span(x.EndedAt.Sub(from))
	}

	switch x.End {
	case "":
		return "not yet, or not known"
	case client.EndNeverStarted:
		return "never started"
	case client.EndNeverFires:
		return "never fires"
	case client.EndStopped:
		return "stopped" + after(" in ")
	case client.EndFinished:
		return "finished all the same" + after(", after ")
	case client.EndLeaked:
		return "LEAKED: not waited for" + after(" after ")
	case client.EndWorkerGone:
		return "its worker was gone" + after(", told after ")
	case client.EndTimedOut:
		return "nobody told, its time was over" + after(" after ")
	case client.EndRefused:
		return "not cancelled: " + excerpt(x.Error.Message, longestDetail)
	default:
		return string(x.End) + after(" after ")
	}
}

func dash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}
