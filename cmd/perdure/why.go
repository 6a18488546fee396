package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

func (c *command) whyVerb() *cobra.Command {
	var limit int
	var execution, cursor string
	cmd := c.verb("why ID", "Show what was cancelled in an instance: who asked, why, and how it ended", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return c.why(ctx, cl, id, execution, limit, cursor)
		})
	cmd.Long = cmd.Short + `.

DECIDED is the time since the execution began at which the cancellation became history. BY is who
asked for it: the orchestration's code (body), the engine when a scope or the execution ended, a
parent, whose own why tells who asked that, or somebody: by IAM, of a role with the session. client is
somebody of whom nothing is known. SEEN is how long it took until the worker saw it, and ENDED how it ended then:
never started, stopped, finished all the same, or leaked: its code ignored its context, and nobody
waits for it. What still waits in a queue has neither; nor has what a worker ran that died, unless
its call asked for the end (WaitForCancellation): then that is told when the worker's lease is over.`
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
	page, err := cl.CancellationsPage(ctx, id, execution, limit, cursor)
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
	head := fmt.Sprintf("%s  %s  %s\nexecution %s, started %s\n", clean(s.InstanceID), clean(strings.TrimSpace(s.Orchestration+" "+s.Version)), standing(s),
		clean(page.ExecutionID), moment(page.StartedAt))
	head += byWhom("started", s.StartedBy) + byWhom("terminated", s.TerminatedBy)
	if len(page.Items) == 0 {
		return head + "\nnothing was cancelled" + instead(s) + "\n"
	}
	t := table{header: []string{">#", "WHAT", columnName, ">DECIDED", "BY", "WHY", ">SEEN", "ENDED"}}
	for i := range page.Items {
		x := &page.Items[i]
		t.add(strconv.FormatInt(x.ID, 10), strings.ReplaceAll(string(x.Target), "_", "-"), excerpt(cancelledName(x), longestName), "+"+span(x.DecidedAt.Sub(page.StartedAt)),
			ending(dash(shortARN(x.RequestedBy)), longestName), excerpt(reasonText(x), longestDetail), seenText(x), endText(x))
	}
	return head + "\n" + t.String()
}

// byWhom is a line on who did something; empty where nobody knows.
func byWhom(what, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s by %s\n", what, clean(name))
}

// instead is what is wrong with an instance in which nothing was cancelled, and where that is shown.
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

func seenText(x *client.Cancellation) string {
	if x.SeenAt.IsZero() {
		return "—"
	}
	return "+" + span(x.SeenAt.Sub(x.DecidedAt))
}

// endText tells the end of an activity from when its worker saw that it was cancelled, and any other from the decision.
func endText(x *client.Cancellation) string {
	from := x.SeenAt
	if from.IsZero() {
		from = x.DecidedAt
	}
	after := span(x.EndedAt.Sub(from))
	switch x.End {
	case "":
		return "not yet, or not known"
	case client.EndNeverStarted:
		return "never started"
	case client.EndNeverFires:
		return "never fires"
	case client.EndStopped:
		return "stopped in " + after
	case client.EndFinished:
		return "finished all the same, after " + after
	case client.EndLeaked:
		return "LEAKED: not waited for after " + after
	case client.EndWorkerGone:
		return "its worker was gone, told after " + after
	case client.EndTimedOut:
		return "nobody told, its time was over after " + after
	case client.EndRefused:
		return "not cancelled: " + excerpt(x.Error.Message, longestDetail)
	default:
		return fmt.Sprintf("%s after %s", x.End, after)
	}
}

func dash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}
