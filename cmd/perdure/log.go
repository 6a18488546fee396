package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

const longestDetail = 72

// eventLog answers, of an event, what lies in other events of the same history.
type eventLog struct {
	byID    map[int64]*history.Event
	settled map[int64]bool
	over    bool
	began   time.Time
}

func newLog(events []history.Event) *eventLog {
	l := &eventLog{byID: map[int64]*history.Event{}, settled: map[int64]bool{}}
	for i := range events {
		l.add(&events[i])
	}
	return l
}

// add takes the history's next event.
func (l *eventLog) add(e *history.Event) {
	if len(l.byID) == 0 {
		l.began = e.Time
	}
	l.byID[e.ID] = e
	l.over = l.over || e.Kind.Terminal()
	for _, id := range e.Settles() {
		l.settled[id] = true
	}
}

// took is the time from schedule to end on the event that ends something, and … on the schedule of what has not ended.
func (l *eventLog) took(e *history.Event) string {
	if from := l.byID[e.SourceEventID]; from != nil {
		return span(e.Time.Sub(from.Time))
	}
	if (e.Kind == history.ActivityScheduled || e.Kind == history.TimerCreated) && !l.over && !l.settled[e.ID] {
		return "…"
	}
	return ""
}

// name is the event's own, or that of what it is about.
func (l *eventLog) name(e *history.Event) string {
	if from := l.byID[e.SourceEventID]; from != nil && e.Name == "" {
		return from.Name
	}
	return e.Name
}

// detail is what a reader looks for first in an event of the kind: where it came from, then what it carries.
func (l *eventLog) detail(e *history.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.SourceEventID != 0 {
		add("of #%d", e.SourceEventID)
	}
	for _, r := range e.SourceEventIDs {
		add("of #%d to #%d", r.First, r.Last)
	}
	if e.Version != "" {
		add("version %s", e.Version)
	}
	if e.BuildID != "" {
		add("build %s", e.BuildID)
	}
	if e.Attempt > 1 {
		add("attempt %d", e.Attempt)
	}
	if e.FireAt != nil {
		add("due %s", moment(*e.FireAt))
	}
	if e.Reason != "" {
		add("%s", e.Reason)
	}
	if e.Message != "" {
		add("%q", e.Message)
	}
	if by := requester(e.RequestedBy); by != "" {
		add("by %s", by)
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		add("as %s", e.ExecutionID)
	}
	by := ""
	for f := e.Error; f != nil; f, by = f.Cause, "caused by " {
		add("%s%s", by, failureText(f))
	}
	if p := payloadOf(e); p != nil {
		add("%s", p)
	}
	return strings.Join(parts, " ")
}

// requester is who asked for an event; empty for what the engine says of itself, and where nobody knows.
func requester(by string) string {
	switch by {
	case history.RequestedByBody, history.RequestedByEngine, history.RequestedByClient:
		return ""
	default:
		return shortARN(by)
	}
}

// shortARN is what of an identity tells it from the others of its account: of an assumed role, the role and the session. The columns of tables have no
// room for the rest, which the JSON has.
func shortARN(name string) string {
	if parts := strings.SplitN(name, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		return parts[5]
	}
	return name
}

// payloadOf is the one payload that an event of any kind has.
func payloadOf(e *history.Event) []byte {
	for _, p := range []history.Payload{e.Input, e.Result, e.Output, e.Data, e.Value, e.CustomStatus} {
		if doc, inline := p.Document(); inline && doc != nil {
			return doc
		} else if ref, ok := p.Reference(); ok {
			return fmt.Appendf(nil, "%d bytes at %s", ref.Bytes, ref.Ref)
		}
	}
	return nil
}
