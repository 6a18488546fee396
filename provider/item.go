package provider

import (
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Position is where a message stands in an instance's inbox. The zero Position is before all of them.
type Position struct {
	Inbox    string // the queue that gave the number: numbers of two queues cannot be compared
	Sequence string // decimal, growing within a message group, of up to 128 bits (SQS SequenceNumber)
}

// Covers reports whether a turn that consumed up to p has consumed the message at q.
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

// Record is a message as a queue handed it over, still encoded.
type Record struct {
	ID           string // the queue's message id, by which a batch names its failures
	Lock         string // lock token: the receipt handle
	Body         string
	Group        string // FIFO queues: the message group
	Sequence     string // FIFO queues: the SequenceNumber
	ReceiveCount int    // AttemptCount: deliveries so far, this one included
	Hold         *Hold  // until when the lock is known to last; nil for a record that was pushed
}

// OrchestrationItem is the messages of one instance that were received, and so locked, together.
type OrchestrationItem struct {
	InstanceID string
	Messages   []InboxMessage
}

// InboxMessage is a message at its place in the inbox.
type InboxMessage struct {
	Message

	Position Position
	Record   Record
}

// Head is where an execution's history stands.
type Head struct {
	ExecutionID string
	Segment     int64    // sequence of the last segment; 0 holds only the start event
	Watermark   Position // the last message consumed (R3)
}

// Segment is one committed turn: the unit of history that is written, and the outbox (R9).
type Segment struct {
	Sequence  int64
	Watermark Position
	Events    []history.Event
}

// Orchestration is the history of an instance's current execution, as read.
type Orchestration struct {
	InstanceID string
	Head       Head
	// Previous is the execution that continued as this one; empty when this is the instance's first.
	Previous string
	// Verified: read strongly consistent in this invocation. Unverified state may only lead to a commit (R5).
	Verified bool
	Segments []Segment
	// Retention is as in Turn. It is not read: who has the dispatch repeated sets it.
	Retention time.Duration
}

// Start is the event that the execution began with.
func (o *Orchestration) Start() *history.Event { return &o.Segments[0].Events[0] }

// Last is the last event of the history, so far.
func (o *Orchestration) Last() *history.Event {
	events := o.Segments[len(o.Segments)-1].Events
	return &events[len(events)-1]
}

// Events joins the segments' events.
func (o *Orchestration) Events() ([]history.Event, error) {
	runs := make([][]history.Event, len(o.Segments))
	for i := range o.Segments {
		runs[i] = o.Segments[i].Events
	}
	return history.Log(runs...)
}

// EventsOf joins the events of segments, without a look at them.
func EventsOf(segments []Segment) (all []history.Event) {
	for i := range segments {
		all = append(all, segments[i].Events...)
	}
	return all
}

// Consistency is how fresh a read must be.
type Consistency bool

// The two consistencies of a read: one may miss the latest commits, at half the price; the other may not.
const (
	Eventual Consistency = false
	Strong   Consistency = true
)
