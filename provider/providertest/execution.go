package providertest

import (
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// execution is an execution as its orchestrator knows it.
type execution struct {
	f        *fixture
	instance provider.Instance
	head     provider.Head
	next     int64 // id of the next event
	base     int   // the message that its first segment consumed
	block    provider.CancelBlock
	state    *history.State // nil until it is asked for
}

// at returns the position of a message in an inbox of the test.
func at(sequence int) provider.Position {
	return provider.Position{Inbox: "test", Sequence: strconv.Itoa(sequence)}
}

// number is the inverse of at.
func number(p provider.Position) int {
	n, _ := strconv.Atoi(p.Sequence)
	return n
}

// turn returns the next turn with these events, with IDs and times. It consumed the message at the turn's own number.
func (e *execution) turn(events ...history.Event) *provider.Turn {
	t := &provider.Turn{
		InstanceID: e.instance.InstanceID, Head: e.head, Watermark: at(e.base + int(e.head.Segment) + 1), Before: e.before(),
		Events: make([]history.Event, len(events)),
	}
	now := e.f.now()
	for i, event := range events {
		event.ID, event.Time = e.next+int64(i), now
		t.Events[i] = event
	}
	return t
}

// before returns the state of the history so far.
func (e *execution) before() *history.State {
	if e.state == nil {
		e.state = history.NewState(history.TrackTimers, history.Event{ID: 1, Kind: history.OrchestrationStarted, Name: e.instance.Name, StartID: e.instance.StartID, Parent: e.instance.Parent})
	}
	return e.state
}

// commit commits the next turn, all of which must be accepted, and advances the head. It then overwrites the turn and
// its events, because the provider must not retain them.
func (e *execution) commit(events ...history.Event) *provider.Turn {
	e.f.t.Helper()
	t := e.turn(events...)
	take(e, t)
	return t
}

// take is like commit for an existing turn.
func take(e *execution, t *provider.Turn) {
	e.f.t.Helper()
	lent := *t
	lent.Events = slices.Clone(t.Events)
	refused, err := e.f.p.AckOrchestrationItem(e.f.ctx(), &lent)
	e.f.must(err)
	clear(lent.Events)
	lent = provider.Turn{Events: lent.Events}
	if len(refused) > 0 {
		e.f.t.Fatalf("rejected outputs: %v", refused)
	}
	e.follow(t)
}

// follow advances the head to the one after t.
func (e *execution) follow(t *provider.Turn) {
	e.head, e.next = t.After(), e.next+int64(len(t.Events))
	e.before().Apply(t.Events...)
}

// item returns an orchestration item for the execution.
func (e *execution) item() *provider.OrchestrationItem {
	return &provider.OrchestrationItem{InstanceID: e.instance.InstanceID, Messages: []provider.InboxMessage{{
		Message: provider.Message{Kind: provider.MessageWake, InstanceID: e.instance.InstanceID, ExecutionID: e.instance.ExecutionID},
	}}}
}

// read reads the execution with strong consistency.
func (e *execution) read() *provider.Orchestration {
	e.f.t.Helper()
	o, err := e.f.p.ReadOrchestration(e.f.ctx(), e.item(), provider.Strong)
	e.f.must(err)
	return o
}

// log returns the execution's history from ReadHistory.
func (e *execution) log() []history.Event {
	e.f.t.Helper()
	var events []history.Event
	for event, err := range e.f.p.ReadHistory(e.f.ctx(), e.instance.InstanceID, e.instance.ExecutionID, 0) {
		e.f.must(err)
		events = append(events, event)
	}
	if _, err := history.Concat(events); err != nil {
		e.f.t.Error(err)
	}
	return events
}

// wantSegments fails unless the history has exactly these turns after the start.
func (e *execution) wantSegments(turns ...*provider.Turn) {
	e.f.t.Helper()
	o := e.read()
	if len(o.Segments) != len(turns)+1 {
		e.f.t.Fatalf("%d segments, want the start and %d turns", len(o.Segments), len(turns))
	}
	for i, t := range turns {
		e.f.wantEqual("segment", o.Segments[i+1], provider.Segment{Sequence: int64(i) + 1, Watermark: t.Watermark, Events: t.Events})
	}
}

// Names for tests.
const (
	order  = "order"
	refund = "refund"
	v1     = "1.0.0"
	pack   = "pack"
)

// Events for turns.

func turnStarted() history.Event {
	return history.Event{Kind: history.TurnStarted, Version: v1, BuildID: "b"}
}

func activity(queue string) history.Event {
	return history.Event{Kind: history.ActivityScheduled, Name: pack, Queue: queue, Input: history.Payload(`"box"`)}
}

func completed(id int64) history.Event {
	return history.Event{Kind: history.ActivityCompleted, SourceEventID: id, Result: history.Payload(`"ok"`), Attempt: 1}
}

func timer(due time.Time) history.Event {
	return history.Event{Kind: history.TimerCreated, FireAt: &due}
}

// child returns the event that schedules the sub-orchestration c.
func child() history.Event {
	const id = "c"
	return history.Event{Kind: history.SubOrchestrationScheduled, Name: refund, InstanceID: id, StartID: "start of " + id, Input: history.Payload(`7`), Attempt: 1}
}

func detached(id string) history.Event {
	return history.Event{Kind: history.DetachedOrchestrationScheduled, Name: refund, InstanceID: id, StartID: "start of " + id, Input: history.Payload(`7`)}
}

func ended(output string) history.Event {
	return history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(output)}
}

// bulky returns an event of this size, which compression does not reduce.
func bulky(bytes int) history.Event {
	return history.Event{Kind: history.SideEffectRecorded, Value: noise(bytes)}
}

// repeat returns n copies of the event.
func repeat(n int, e history.Event) []history.Event {
	events := make([]history.Event, n)
	for i := range events {
		events[i] = e
	}
	return events
}

// noise returns a JSON string of this size that no compression reduces below about three quarters.
func noise(bytes int) history.Payload {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	doc := make([]byte, bytes)
	x := uint64(88172645463325252) // xorshift64: the same noise every time
	for i := range doc {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		doc[i] = letters[x>>58]
	}
	doc[0], doc[bytes-1] = '"', '"'
	return history.Payload(doc)
}
