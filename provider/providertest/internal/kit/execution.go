package kit

import (
	"slices"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Execution is an execution with the state that its orchestrator has.
type Execution struct {
	F        *Fixture
	Instance provider.Instance
	Head     provider.Head
	Next     int64 // id of the next event
	base     int   // number of the message that the first segment consumed
	Block    provider.CancelBlock
	state    *history.State // nil until Before is called
}

// At returns the position of a message in an inbox of the test.
func At(sequence int) provider.Position {
	return provider.Position{Inbox: "test", Sequence: strconv.Itoa(sequence)}
}

// number is the inverse of At.
func number(p provider.Position) int {
	n, _ := strconv.Atoi(p.Sequence)
	return n
}

// Turn returns the next turn with these events, with IDs and times. The n-th turn consumes the message at position n.
func (e *Execution) Turn(events ...history.Event) *provider.Turn {
	t := &provider.Turn{
		InstanceID: e.Instance.InstanceID, Head: e.Head, Watermark: At(e.base + int(e.Head.Segment) + 1),
		Before: e.Before(),
		Events: make([]history.Event, len(events)),
	}
	now := e.F.StoredNow()
	for i, event := range events {
		event.ID, event.Time = e.Next+int64(i), now
		t.Events[i] = event
	}
	return t
}

// Before returns the state of the history so far.
func (e *Execution) Before() *history.State {
	if e.state == nil {
		e.state = history.NewState(history.TrackTimers, history.Event{
			ID: 1, Kind: history.OrchestrationStarted, Name: e.Instance.Name, StartID: e.Instance.StartID,
			Parent: e.Instance.Parent,
		})
	}
	return e.state
}

// Commit commits the next turn and advances the head. All outputs must be accepted. Commit then overwrites the turn and
// its events, because the provider must not retain them.
func (e *Execution) Commit(events ...history.Event) *provider.Turn {
	e.F.T.Helper()
	t := e.Turn(events...)
	CommitTurn(e, t)
	return t
}

// CommitTurn is like Commit for an existing turn.
func CommitTurn(e *Execution, t *provider.Turn) {
	e.F.T.Helper()
	copied := *t
	copied.Events = slices.Clone(t.Events)
	refused, err := e.F.Provider.AckOrchestrationItem(e.F.Ctx(), &copied)
	e.F.Must(err)
	clear(copied.Events)
	copied = provider.Turn{Events: copied.Events}
	if len(refused) > 0 {
		e.F.T.Fatalf("rejected outputs: got %v", refused)
	}
	e.Follow(t)
}

// Follow advances the head to the head after t.
func (e *Execution) Follow(t *provider.Turn) {
	e.Head, e.Next = t.After(), e.Next+int64(len(t.Events))
	e.Before().Apply(t.Events...)
}

// Item returns an orchestration item for the execution.
func (e *Execution) Item() *provider.OrchestrationItem {
	return &provider.OrchestrationItem{InstanceID: e.Instance.InstanceID, Messages: []provider.InboxMessage{{
		Message: provider.Message{
			Kind: provider.MessageWake, InstanceID: e.Instance.InstanceID, ExecutionID: e.Instance.ExecutionID,
		},
	}}}
}

// Read reads the execution with strong consistency.
func (e *Execution) Read() *provider.Orchestration {
	e.F.T.Helper()
	o, err := e.F.Provider.ReadOrchestration(e.F.Ctx(), e.Item(), provider.Strong)
	e.F.Must(err)
	return o
}

// History returns the execution's history from ReadHistory.
func (e *Execution) History() []history.Event {
	e.F.T.Helper()
	var events []history.Event
	for event, err := range e.F.Provider.ReadHistory(e.F.Ctx(), e.Instance.InstanceID, e.Instance.ExecutionID, 0) {
		e.F.Must(err)
		events = append(events, event)
	}
	if _, err := history.Concat(events); err != nil {
		e.F.T.Error(err)
	}
	return events
}

// WantSegments fails if the history does not have exactly these turns after the start.
func (e *Execution) WantSegments(turns ...*provider.Turn) {
	e.F.T.Helper()
	o := e.Read()
	if len(o.Segments) != len(turns)+1 {
		e.F.T.Fatalf("got %d segments, want the start and %d turns", len(o.Segments), len(turns))
	}
	for i, t := range turns {
		e.F.WantEqual("segment", o.Segments[i+1], provider.Segment{
			Sequence: int64(i) + 1, Watermark: t.Watermark, Events: t.Events,
		})
	}
}

// Create creates the instance of a start message.
func (f *Fixture) Create(m *provider.InboxMessage) *Execution {
	f.T.Helper()
	o, err := f.Provider.CreateOrchestration(f.Ctx(), m)
	f.Must(err)
	if !o.Verified {
		f.T.Error("created execution is not marked as verified")
	}
	return &Execution{F: f, Instance: f.Instance(m.InstanceID), Head: o.Head, Next: 2, base: number(m.Position)}
}

// Continuing returns the turn that ends e and continues as next.
func (e *Execution) Continuing(next string, events ...history.Event) *provider.Turn {
	t := e.Turn(append(events, history.Event{Kind: history.OrchestrationContinuedAsNew, ExecutionID: next})...)
	t.Next = &provider.Successor{ExecutionID: next, Start: history.Event{
		ID: 1, Kind: history.OrchestrationStarted, Time: e.F.StoredNow(), Name: Order,
		Input:   history.Payload(`{"n":2}`),
		StartID: e.Instance.StartID, Number: e.Instance.ExecutionNumber + 1,
	}}
	return t
}

// ContinueAs commits the turn of Continuing and returns the next execution.
func (e *Execution) ContinueAs(next string, events ...history.Event) *Execution {
	e.F.T.Helper()
	t := e.Continuing(next, events...)
	refused, err := e.F.Provider.AckOrchestrationItem(e.F.Ctx(), t)
	e.F.Must(err)
	if len(refused) > 0 {
		e.F.T.Fatalf("rejected outputs: got %v", refused)
	}
	return e.F.ExecutionAfter(t)
}

// ExecutionAfter returns the execution that t continued as.
func (f *Fixture) ExecutionAfter(t *provider.Turn) *Execution {
	f.T.Helper()
	return &Execution{F: f, Instance: f.Instance(t.InstanceID), Head: t.After(), Next: 2, base: number(t.Watermark)}
}

// Since selects the turn that consumed the message at a position, and later turns.
func Since(at provider.Position) provider.RedispatchFrom {
	return provider.RedispatchFrom{Position: at}
}

// Redispatch sends the outputs of an execution again, starting with the turn that consumed the message at a position.
func (f *Fixture) Redispatch(e *Execution, from provider.Position) []provider.OutputFailure {
	f.T.Helper()
	refused, err := f.Provider.RedispatchOrchestration(f.Ctx(), e.Read(), Since(from))
	f.Must(err)
	return refused
}
