package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
)

// EventLog describes the events of a history. A description may need earlier events of the same history.
type EventLog struct {
	byID  map[int64]*history.Event
	state *history.State
	start time.Time
}

// NewEventLog returns a log of the first events of a history.
func NewEventLog(events []history.Event) *EventLog {
	l := &EventLog{byID: map[int64]*history.Event{}, state: history.NewState(history.TrackOpen)}
	for i := range events {
		l.Add(&events[i])
	}
	return l
}

// Add adds the next event of the history.
func (l *EventLog) Add(e *history.Event) {
	if len(l.byID) == 0 {
		l.start = e.Time
	}
	l.byID[e.ID] = e
	l.state.Apply(*e)
}

// took returns the duration of a task for the event that ends the task. It returns "…" for the scheduling event of an
// activity or timer that has not ended, and "" for other events.
func (l *EventLog) took(e *history.Event) string {
	if from := l.byID[e.SourceEventID]; from != nil {
		return term.Duration(e.Time.Sub(from.Time))
	}
	open, ok := l.state.Open(e.ID)
	timed := ok && (open.Kind == history.ActivityScheduled || open.Kind == history.TimerCreated)
	if timed && !l.state.Ended() {
		return "…"
	}
	return ""
}

// name returns the name of an event. If the event has no name, it returns the name of the scheduling event, or the
// change ID.
func (l *EventLog) name(e *history.Event) string {
	if from := l.byID[e.SourceEventID]; from != nil && e.Name == "" {
		return from.DisplayName()
	}
	return cmp.Or(e.DisplayName(), e.ChangeID)
}

// Detail returns the most important fields of an event: first its origin, then its payload.
func (l *EventLog) Detail(e *history.Event) string {
	parts := slices.Concat(originOf(e), causeOf(e))
	if c := e.Cancel; c != nil {
		parts = append(parts, cancelNotes(c)...)
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		parts = append(parts, "as "+e.ExecutionID)
	}

	by := ""
	for f := e.Error; f != nil; f, by = f.Cause, "caused by " {
		parts = append(parts, by+Failure(f))
		if details := detailsText(f); details != "" {
			parts = append(parts, "details "+details)
		}
	}
	if p := payloadOf(e); p != nil {
		parts = append(parts, string(p))
	}
	clauses := parkedOf(e)
	if len(parts) > 0 {
		clauses = append(clauses, strings.Join(parts, " "))
	}
	return strings.Join(clauses, ", ")
}

// parkedOf returns the first input that an event parks, and the number of other inputs.
func parkedOf(e *history.Event) (clauses []string) {
	if e.Kind != history.InputsParked || len(e.Inputs) == 0 {
		return nil
	}
	clauses = append(clauses, parkedText(&e.Inputs[0]))
	if more := len(e.Inputs) - 1; more > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d more", more))
	}
	return clauses
}

// parkedText returns the name and the sender of an external event, or the kind and the source of another input.
func parkedText(in *history.Event) string {
	words := []string{string(in.Kind)}
	if in.Kind == history.ExternalEventRaised {
		words = []string{"event"}
	}
	if in.Name != "" {
		words = append(words, in.Name)
	}
	if in.SourceEventID != 0 {
		words = append(words, fmt.Sprintf("of #%d", in.SourceEventID))
	}
	if in.Parent != nil {
		words = append(words, "from instance "+in.Parent.InstanceID)
	} else if by := requester(in.RequestedBy); by != "" {
		words = append(words, "by "+by)
	}
	return strings.Join(words, " ")
}

// originOf returns the scheduling event, version, build, call options and attempt of an event.
func originOf(e *history.Event) (parts []string) {
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
		add("build %s", term.BuildID(e.BuildID))
	}
	if e.Inline {
		add("inline")
	}
	if e.AtMostOnce {
		add("at most once")
	}
	if e.ExclusiveKey != "" {
		add("exclusive key %q", e.ExclusiveKey)
	}
	if e.Attempt > 1 {
		add("attempt %d", e.Attempt)
	}
	return parts
}

// causeOf returns the due time, the other instance, the reason and the requester of an event.
func causeOf(e *history.Event) (parts []string) {
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.FireAt != nil {
		add("due %s", term.Time(*e.FireAt))
	}
	switch { // the other instance, if the event was sent or received
	case e.Kind == history.ExternalEventSent, e.Kind == history.UpdateSent:
		add("to instance %s", e.InstanceID)
	case e.Kind == history.SubOrchestrationScheduled, e.Kind == history.DetachedOrchestrationScheduled:
		add("instance %s", e.InstanceID)
	case (e.Kind == history.ExternalEventRaised || e.Kind == history.UpdateAwaited) && e.Parent != nil:
		add("from instance %s", e.Parent.InstanceID)
	case e.Kind == history.ExecutionRestarted && e.Parent != nil:
		add("from event %d of instance %s, execution %s", e.Parent.EventID, e.Parent.InstanceID, e.Parent.ExecutionID)
	}
	if e.Reason != "" {
		add("%s", e.Reason)
	}
	if e.Message != "" && e.Kind != history.TimerCreated { // the name of a timer is its message
		add("%q", e.Message)
	}
	if by := requester(e.RequestedBy); by != "" {
		add("by %s", by)
	}
	return parts
}

// cancelNotes returns the progress of a cancellation that the code waits for.
func cancelNotes(c *history.CancelDetails) (notes []string) {
	if c.WaitForCancellation {
		notes = append(notes, "waits for cancellation")
	}
	if c.SeenAt != nil {
		notes = append(notes, "cancel observed "+term.Time(*c.SeenAt))
	}
	if c.Outcome != "" {
		notes = append(notes, "ended "+c.Outcome)
	}
	return notes
}

// requester returns the caller that requested an event, or "" for the engine or an unknown caller.
func requester(by string) string {
	switch by {
	case history.RequestedByOrchestration, history.RequestedByEngine, history.RequestedByClient:
		return ""
	default:
		return ShortIdentity(by)
	}
}

// ShortIdentity returns the part of an identity that is unique within its account, such as the role and the session of
// an assumed role. Table columns have no space for the whole identity, which --json shows.
func ShortIdentity(name string) string {
	if parts := strings.SplitN(name, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		return parts[5]
	}
	return name
}

// EncodedPayload describes a payload that cannot be decoded.
func EncodedPayload(s *client.EncodedPayload) string {
	text := fmt.Sprintf("%d bytes", s.Bytes)
	if s.Codec != "" {
		text += ", encoded by " + s.Codec
	}
	if s.Key != "" {
		text += ", in the payload store at " + s.Key
	}
	return text
}

// payloadOf returns the payload of an event. No kind of event has more than one payload.
func payloadOf(e *history.Event) []byte {
	for _, p := range []history.Payload{e.Input, e.Result, e.Output, e.Data, e.Value, e.CustomStatus} {
		if doc, inline := p.Document(); inline && doc != nil {
			return doc
		} else if sealed, ok := client.EncodedPayloadOf(p); ok {
			return []byte(EncodedPayload(&sealed))
		} else if ref, ok := p.Reference(); ok {
			return fmt.Appendf(nil, "%d bytes at %s", ref.Bytes, ref.Ref)
		}
	}
	return nil
}
