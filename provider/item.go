package provider

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
)

// Position is where a message stands in an instance's inbox. The zero Position is before all of them.
type Position struct {
	Inbox    string // the queue that gave the number: numbers of two queues cannot be compared
	Sequence string // decimal, growing within a message group, of up to 128 bits (SQS SequenceNumber)
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

// Since is from which turn on it may be that outputs were not sent.
type Since struct {
	// Position is that of the first message whose turn it may be; zero is before all messages of the current execution.
	Position Position
	// HeadAt is a time instead: the turn is of the message that was consumed last by then, or of one behind it. Zero is none.
	HeadAt time.Time
}

// Record is a message as a queue delivered it, still encoded.
type Record struct {
	ID           string // the queue's message id, by which a batch names its failures
	Lock         string // lock token: the receipt handle
	Body         string
	Group        string    // FIFO queues: the message group, in which records are in order
	Sequence     string    // FIFO queues: the SequenceNumber
	ReceiveCount int       // AttemptCount: deliveries so far, this one included
	SentAt       time.Time // when it was sent; zero where that is not known
	Hold         *Hold     // how long the lock may be relied on; nil for a record that was pushed
}

// RecordOf makes a record of an SQS message with its system attributes, all that are of use: ApproximateReceiveCount, SentTimestamp,
// SequenceNumber, MessageGroupId. A group of a standard queue's message is left out: it is for fairness, and puts nothing in order.
func RecordOf(id, lock, body string, attributes map[string]string) Record {
	r := Record{ID: id, Lock: lock, Body: body, ReceiveCount: 1, SentAt: SentAt(attributes["SentTimestamp"]), Sequence: attributes["SequenceNumber"]}
	if n, err := strconv.Atoi(attributes["ApproximateReceiveCount"]); err == nil {
		r.ReceiveCount = n
	}
	if r.Sequence != "" {
		r.Group = attributes["MessageGroupId"]
	}
	return r
}

// SentAt reads SQS's SentTimestamp: milliseconds since 1970. The time is zero where there is none.
func SentAt(timestamp string) time.Time {
	ms, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// OrchestrationItem holds the messages of one instance that were received, and so locked, together.
type OrchestrationItem struct {
	InstanceID string
	Messages   []InboxMessage
}

// InboxMessage is a message at its place in the inbox.
type InboxMessage struct {
	Message

	Position Position
	Record   Record
	// Begins is the id of the execution that a start is to make, where who handles it has made payloads of that: of NewExecutionID. Empty: the provider
	// makes one.
	Begins string
	// Brings are the inputs that a start has with it: the first turn takes them. They are of the message that asks for it.
	Brings []history.Event
	// Doubtful is when a message was sent that may be a copy of one which an instance before has taken; zero: it is none. Of an instance that was deleted
	// after that there must be no next one by it.
	Doubtful time.Time
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

// TraceParent returns the trace context of the turn, which what it causes is sent with; empty where it has none. It is
// that of TurnStarted, and of the first event of an end that no code took part in.
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

// Orchestration is the history of an instance's current execution, as read.
type Orchestration struct {
	InstanceID string
	Head       Head
	// Previous is the execution that continued as this one; empty when this is the instance's first.
	Previous string
	// Verified: it was read strongly consistent in this invocation. Unverified state may only lead to a commit (R5).
	Verified bool
	Segments []Segment
	// Retention is as in Turn. A read does not fill it in: the caller who repeats a dispatch sets it.
	Retention time.Duration
}

// Start returns the event that the execution began with.
func (o *Orchestration) Start() *history.Event { return &o.Segments[0].Events[0] }

// TakenOver returns the events that the execution has taken over from another, in a restart (R30); none, as nearly always.
func (o *Orchestration) TakenOver() []history.Event {
	first := o.Segments[0].Events
	if first[len(first)-1].Kind != history.ExecutionRestarted {
		return nil
	}
	return first
}

// Last returns the last event of the history so far.
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

// State folds the history that was read.
func (o *Orchestration) State(keep history.Keep) *history.State {
	s := history.NewState(keep)
	for i := range o.Segments {
		s.Apply(o.Segments[i].Events...)
	}
	return s
}

// EventsOf joins the events of segments without checking them.
func EventsOf(segments []Segment) (all []history.Event) {
	for i := range segments {
		all = append(all, segments[i].Events...)
	}
	return all
}

// Consistency is how fresh a read must be.
type Consistency int

const (
	// Eventual may miss the latest commits, at half the price. It is the zero value.
	Eventual Consistency = iota
	// Strong misses nothing that was committed before the read began.
	Strong
)
