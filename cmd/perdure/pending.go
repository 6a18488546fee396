package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

// describePending returns the pending tasks of an instance as a table, or the reason why they are not known.
func describePending(p *httpapi.Pending, err error) string {
	switch {
	case p == nil:
		return ""
	case p.Pending == nil:
		return fmt.Sprintf("\nPending tasks cannot be read: %s\n", excerpt(err.Error(), 4*longestDetail))
	case p.Total == 0:
		return "\nNo pending tasks in its history.\n"
	}
	t := table{header: []string{">#", "TYPE", columnName, ">ATTEMPT", ">AGE", ">NEXT", ">HEARTBEAT", "WORKER"}}
	for i := range p.Items {
		x := &p.Items[i]
		t.add(strconv.FormatInt(x.ID, 10), strings.ReplaceAll(string(x.Kind), "_", "-"), excerpt(pendingName(x), longestName), attemptText(x),
			ago(p.ReadAt, x.ScheduledAt), nextText(x, p.ReadAt), ago(p.ReadAt, x.LastHeartbeatAt), workerText(x, p.ReadAt))
	}
	head := fmt.Sprintf("\nPending: %d\n", p.Total)
	if n := len(p.Items); n < p.Total {
		head = fmt.Sprintf("\nPending: %d (showing %d)\n", p.Total, n)
	}
	return head + t.String()
}

func pendingName(x *client.PendingItem) string { return strings.TrimSpace(x.Name + " " + x.InstanceID) }

func attemptText(x *client.PendingItem) string {
	if x.Attempt == 0 {
		return "—"
	}
	return strconv.Itoa(x.Attempt)
}

func ago(now, then time.Time) string {
	if then.IsZero() {
		return "—"
	}
	return span(now.Sub(then))
}

// nextText returns how long it is until something is due.
func nextText(x *client.PendingItem, now time.Time) string {
	due := x.DueAt
	if due.IsZero() {
		due = x.NextAttemptAt
	}
	switch {
	case due.IsZero():
		return "—"
	case due.After(now):
		return "in " + span(due.Sub(now))
	default:
		return "due"
	}
}

// workerText returns what is known about the execution of a pending task, except its times.
func workerText(x *client.PendingItem, now time.Time) string {
	var known []string
	if !x.CancelledAt.IsZero() {
		known = append(known, fmt.Sprintf("cancelled %s ago (%s), waiting for its end", span(now.Sub(x.CancelledAt)), x.CancelReason))
	}
	if !x.ResultPendingSince.IsZero() {
		known = append(known, handedOverText(x, now))
	}
	if !x.UnregisteredAt.IsZero() {
		known = append(known, fmt.Sprintf("not registered in the worker (build %s, %s ago)", excerpt(x.UnregisteredBuildID,
			longestName), span(now.Sub(x.UnregisteredAt))))
	}
	if x.LastError != nil {
		known = append(known, "last error: "+excerpt(failureText(x.LastError), longestDetail))
	}
	if x.NoWorker {
		known = append(known, missedText(x, now))
	}
	if len(known) == 0 && x.Kind == client.PendingActivity {
		known = append(known, sentText(x))
	}
	return strings.Join(known, "; ")
}

// handedOverText describes an activity that waits for asynchronous completion.
func handedOverText(x *client.PendingItem, now time.Time) string {
	text := "waiting for asynchronous completion for " + span(now.Sub(x.ResultPendingSince))
	if x.NextTimeoutCheckAt.After(now) {
		text += fmt.Sprintf(" (limit in %s)", span(x.NextTimeoutCheckAt.Sub(now)))
	}
	return text
}

// missedText describes an activity whose queue has no active worker.
func missedText(x *client.PendingItem, now time.Time) string {
	queue := excerpt(x.Queue, longestName)
	if x.WorkerSeenAt.IsZero() {
		return fmt.Sprintf("in queue %s: no worker has ever reported", queue)
	}
	return fmt.Sprintf("in queue %s: no worker has reported for %s", queue, span(now.Sub(x.WorkerSeenAt)))
}

// sentText describes an activity of which only heartbeats are known.
func sentText(x *client.PendingItem) string {
	if !x.LastHeartbeatAt.IsZero() {
		return "started"
	}
	return "sent, start not confirmed"
}
