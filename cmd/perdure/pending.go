package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
)

// describePending returns what an instance waits for, as a table; or why that is not known.
func describePending(p *httpapi.Pending, err error) string {
	switch {
	case p == nil:
		return ""
	case p.Pending == nil:
		return fmt.Sprintf("\nWhat it waits for cannot be read: %s\n", excerpt(err.Error(), 4*longestDetail))
	case p.Total == 0:
		return "\nIt waits for nothing that its history tells.\n"
	}
	t := table{header: []string{">#", "WAITS FOR", columnName, ">ATTEMPT", ">SINCE", ">NEXT", ">HEARTBEAT", "KNOWN OF IT"}}
	for i := range p.Items {
		x := &p.Items[i]
		t.add(strconv.FormatInt(x.ID, 10), strings.ReplaceAll(string(x.What), "_", "-"), excerpt(pendingName(x), longestName), attemptText(x),
			ago(p.ReadAt, x.Since), nextText(x, p.ReadAt), ago(p.ReadAt, x.LastHeartbeatAt), knownText(x, p.ReadAt))
	}
	head := fmt.Sprintf("\nPending: %d\n", p.Total)
	if n := len(p.Items); n < p.Total {
		head = fmt.Sprintf("\nPending: %d, of which %d are shown\n", p.Total, n)
	}
	return head + t.String()
}

func pendingName(x *client.PendingItem) string { return strings.TrimSpace(x.Name + " " + x.ChildID) }

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
		due = x.NextTryAt
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

// knownText returns what is known of something beside its times.
func knownText(x *client.PendingItem, now time.Time) string {
	var known []string
	if !x.CancelledAt.IsZero() {
		known = append(known, fmt.Sprintf("cancelled %s ago (%s), waiting for its end", span(now.Sub(x.CancelledAt)), x.CancelReason))
	}
	if !x.HandedOverAt.IsZero() {
		known = append(known, handedOverText(x, now))
	}
	if !x.UnknownAt.IsZero() {
		known = append(known, fmt.Sprintf("no worker knows it (build %s, %s ago)", excerpt(x.UnknownBuild, longestName), span(now.Sub(x.UnknownAt))))
	}
	if x.LastError != nil {
		known = append(known, excerpt(failureText(x.LastError), longestDetail))
	}
	if x.NoWorker {
		known = append(known, missedText(x, now))
	}
	if len(known) == 0 && x.What == client.PendingActivity {
		known = append(known, sentText(x))
	}
	return strings.Join(known, "; ")
}

// handedOverText returns that an activity is completed from outside, and how long it may take.
func handedOverText(x *client.PendingItem, now time.Time) string {
	text := fmt.Sprintf("handed over %s ago, waits for whoever has its token", span(now.Sub(x.HandedOverAt)))
	if x.LimitAt.After(now) {
		text += fmt.Sprintf(" (limit in %s)", span(x.LimitAt.Sub(now)))
	}
	return text
}

// missedText returns that no worker is there for an activity.
func missedText(x *client.PendingItem, now time.Time) string {
	queue := excerpt(x.Queue, longestName)
	if x.WorkerSeenAt.IsZero() {
		return fmt.Sprintf("waits in queue %s: no worker of it has ever been heard of", queue)
	}
	return fmt.Sprintf("waits in queue %s: no worker of it has been heard of for %s", queue, span(now.Sub(x.WorkerSeenAt)))
}

// sentText returns no more of an activity than is certain.
func sentText(x *client.PendingItem) string {
	if !x.LastHeartbeatAt.IsZero() {
		return "has begun"
	}
	return "sent, not known to have begun"
}
