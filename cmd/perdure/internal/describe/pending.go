package describe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
)

// longestError is the maximum length of a last error in characters, which is about two lines.
const longestError = 160

// Pending returns a table of the pending tasks of an instance, or the reason why the tasks are unknown.
func Pending(p *httpapi.Pending, children Children, err error) string {
	switch {
	case p == nil:
		return ""
	case p.Pending == nil:
		return fmt.Sprintf("\nPending tasks cannot be read: %s\n", term.Excerpt(err.Error(), 4*term.MaxDetail))
	case p.Total == 0:
		return "\nNo pending tasks in the history.\n"
	}
	t := term.Table{Header: []string{">#", "TYPE", term.ColumnName, ">ATTEMPT", ">AGE", ">NEXT", term.ColumnStatus}}
	for i := range p.Items {
		x := &p.Items[i]
		status, notes := taskStatus(x, p.ReadAt)
		if x.Kind == client.PendingSubOrchestration && status == "" {
			status = children.text(x.InstanceID)
		}
		t.Add(term.Number(x.ID), strings.ReplaceAll(string(x.Kind), "_", "-"),
			term.Excerpt(pendingName(x), term.MaxName), attemptText(x), since(p.ReadAt, x.ScheduledAt),
			nextText(x, p.ReadAt), status)
		t.Note(notes...)
	}
	head := fmt.Sprintf("\nPending: %d\n", p.Total)
	if n := len(p.Items); n < p.Total {
		head = fmt.Sprintf("\nPending: %d (showing %d)\n", p.Total, n)
	}
	return head + t.String()
}

func pendingName(x *client.PendingItem) string { return strings.TrimSpace(x.Name + " " + x.InstanceID) }

func attemptText(x *client.PendingItem) string {
	switch {
	case x.Attempt == 0:
		return "—"
	case x.MaxAttempts > 0:
		return fmt.Sprintf("%d of %d", x.Attempt, x.MaxAttempts)
	default:
		return strconv.Itoa(x.Attempt)
	}
}

func since(now, then time.Time) string {
	if then.IsZero() {
		return "—"
	}
	return term.Duration(now.Sub(then))
}

// nextText returns the time until a task or its next attempt is due.
func nextText(x *client.PendingItem, now time.Time) string {
	due := x.DueAt
	if due.IsZero() {
		due = x.NextAttemptAt
	}
	switch {
	case due.IsZero():
		return "—"
	case due.After(now):
		return "in " + term.Duration(due.Sub(now))
	default:
		return "due"
	}
}

// taskStatus returns a short status of a pending task, or "" if the status is unknown, and notes with details.
func taskStatus(x *client.PendingItem, now time.Time) (status string, notes []string) {
	add := func(words, note string) {
		if status == "" {
			status = words
		}
		notes = append(notes, note)
	}
	if !x.CancelledAt.IsZero() {
		add("cancelled",
			fmt.Sprintf("cancelled %s ago (%s), waiting for its end", term.Duration(now.Sub(x.CancelledAt)),
				term.Excerpt(x.CancelReason, term.MaxName)))
	}
	if !x.ResultPendingSince.IsZero() {
		add("external", externalText(x, now))
	}
	if !x.UnregisteredAt.IsZero() {
		add("not registered", fmt.Sprintf("not registered in the worker (build %s, %s ago)",
			term.BuildID(x.UnregisteredBuildID), term.Duration(now.Sub(x.UnregisteredAt))))
	}
	if x.NoWorker {
		add("no worker", missedText(x, now))
	}
	if x.LastError != nil {
		notes = append(notes, retryText(x, now))
		text := term.Excerpt(lastErrorText(x.LastError), longestError)
		notes = append(notes, term.Wrap("last error: ", text, term.ScreenWidth-len(term.NoteIndent))...)
		if details := detailsText(x.LastError); details != "" {
			text := term.Excerpt(details, longestError)
			notes = append(notes, term.Wrap("details: ", text, term.ScreenWidth-len(term.NoteIndent))...)
		}
		if status == "" && x.NextAttemptAt.After(now) {
			status = "waiting for retry"
		}
	}
	if status == "" && x.Kind == client.PendingActivity {
		status = sentText(x, now)
	}
	if _, exclusive := history.BaseQueue(x.Queue); exclusive {
		notes = append(notes, fmt.Sprintf("in queue %s, which runs one activity per key at a time",
			term.Excerpt(x.Queue, term.MaxName)))
	}
	return status, notes
}

// retryText returns the time at which the last attempt failed, and the due time of the next attempt.
func retryText(x *client.PendingItem, now time.Time) string {
	ago := term.Duration(now.Sub(x.FailedAt))
	text := fmt.Sprintf("attempt %d failed at %s, %s ago", x.Attempt-1, term.Time(x.FailedAt), ago)
	switch {
	case x.NextAttemptAt.IsZero():
		return text
	case x.NextAttemptAt.After(now):
		left := term.Duration(x.NextAttemptAt.Sub(now))
		return fmt.Sprintf("%s; next at %s, in %s", text, term.Time(x.NextAttemptAt), left)
	default:
		return fmt.Sprintf("%s; next was due at %s", text, term.Time(x.NextAttemptAt))
	}
}

// externalText describes an activity that waits for asynchronous completion.
func externalText(x *client.PendingItem, now time.Time) string {
	text := "waiting for asynchronous completion for " + term.Duration(now.Sub(x.ResultPendingSince))
	if x.NextTimeoutCheckAt.After(now) {
		text += fmt.Sprintf(" (limit in %s)", term.Duration(x.NextTimeoutCheckAt.Sub(now)))
	}
	if !x.LastHeartbeatAt.IsZero() {
		text += ", " + heartbeatText(x, now)
	}
	return text
}

// missedText describes an activity whose queue has no active worker.
func missedText(x *client.PendingItem, now time.Time) string {
	queue := term.Excerpt(x.Queue, term.MaxName)
	if x.WorkerSeenAt.IsZero() {
		return fmt.Sprintf("in queue %s: no worker has ever reported", queue)
	}
	return fmt.Sprintf("in queue %s: no worker has reported for %s", queue, term.Duration(now.Sub(x.WorkerSeenAt)))
}

// sentText describes an activity without other information than heartbeats.
func sentText(x *client.PendingItem, now time.Time) string {
	if !x.LastHeartbeatAt.IsZero() {
		return "started, " + heartbeatText(x, now)
	}
	return "sent, start not confirmed"
}

func heartbeatText(x *client.PendingItem, now time.Time) string {
	return "heartbeat " + since(now, x.LastHeartbeatAt) + " ago"
}
