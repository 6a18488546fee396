package provider

import (
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Position is the position of a message in an instance's inbox. The zero Position is before all messages.
type Position struct {
	// Inbox is the queue that assigned Sequence. Positions of different queues cannot be compared.
	Inbox string
	// Sequence is a decimal number of up to 128 bits that increases within a message group (SQS SequenceNumber).
	Sequence string
}

// Covers reports whether a turn that consumed messages up to p has consumed the message at q.
func (p Position) Covers(q Position) bool {
	return p.Inbox == q.Inbox && p.Sequence != "" && compareDecimal(q.Sequence, p.Sequence) <= 0
}

func compareDecimal(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// RedispatchFrom selects the turns whose outputs may not have been sent.
type RedispatchFrom struct {
	// Position is the position of the first message whose turn is selected. The zero value selects all turns of the
	// current execution.
	Position Position
	// HeadAt selects the turns from the last message that was consumed by that time. If it is zero, it is not used.
	HeadAt time.Time
}

// Head is the last committed segment of an execution.
type Head struct {
	ExecutionID string
	// Segment is the sequence of the last segment. Segment 0 contains only the start event.
	Segment int64
	// Watermark is the position of the last consumed message (R3).
	Watermark Position
}

// Segment contains the events of one committed turn. It is written atomically and serves as the outbox of the turn
// (R9).
type Segment struct {
	Sequence  int64
	Watermark Position
	Events    []history.Event
}

// TraceParent returns the trace context of the turn, or an empty value. The outputs of the turn are sent with it.
func (s *Segment) TraceParent() history.TraceParent {
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == history.TurnStarted {
			return e.TraceParent
		}
	}
	if len(s.Events) == 0 {
		return ""
	}
	return s.Events[0].TraceParent
}

// Orchestration is the history of an instance's current execution.
type Orchestration struct {
	InstanceID string
	Head       Head
	// Previous is the execution that continued as this one. It is empty for the first execution.
	Previous string
	// Verified is true if the history was read with strong consistency in this invocation. Unverified state may only be
	// used for a commit (R5).
	Verified bool
	Segments []Segment
	// Retention is described in Turn. Reads do not set Retention. The caller sets it before a redispatch.
	Retention time.Duration
}

// Start returns the first event of the execution.
func (o *Orchestration) Start() *history.Event { return &o.Segments[0].Events[0] }

// RestartedEvents returns the events that a restart copied from another execution, or nil (R30).
func (o *Orchestration) RestartedEvents() []history.Event {
	first := o.Segments[0].Events
	if first[len(first)-1].Kind != history.ExecutionRestarted {
		return nil
	}
	return first
}

// Last returns the last event of the history.
func (o *Orchestration) Last() *history.Event {
	events := o.Segments[len(o.Segments)-1].Events
	return &events[len(events)-1]
}

// Events returns the events of all segments. It returns an error if their IDs have a gap, or if an event follows a
// terminal event.
func (o *Orchestration) Events() ([]history.Event, error) {
	runs := make([][]history.Event, len(o.Segments))
	for i := range o.Segments {
		runs[i] = o.Segments[i].Events
	}
	return history.Concat(runs...)
}

// State returns the state after the last event of the history.
func (o *Orchestration) State(keep history.Tracking) *history.State {
	s := history.NewState(keep)
	for i := range o.Segments {
		s.Apply(o.Segments[i].Events...)
	}
	return s
}

// Consistency is the consistency of a read.
type Consistency int

const (
	// Eventual reads can miss the latest commits, and cost half as much. It is the zero value.
	Eventual Consistency = iota
	// Strong reads return everything that was committed before the read started.
	Strong
)
