// Package mailbox holds the external events of an execution.
package mailbox

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/loading"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// event is an external event that the code has not observed.
type event struct {
	history.CarriedEvent
	at      history.DataLocation // of its data, in this execution
	doc     json.RawMessage      // its data, once a task waits for it; may be encoded
	fetched bool                 // doc is set
	encoded bool                 // doc is an encoded payload
	number  int                  // in the order of arrival
}

// bytes returns the memory of the data. A document is part of the data, or was fetched in addition.
func (e *event) bytes() int {
	if _, inline := e.Data.Referable(); inline {
		return len(e.Data)
	}
	return len(e.Data) + len(e.doc)
}

func byArrival(a, b *event) int { return cmp.Compare(a.number, b.number) }

// Mailbox holds the external events of an execution, and the tasks that wait for them. The first task that waits for
// the name of an event receives the event. Without such a task, the event is free. If its task does not observe the
// event, because the task loses a race or is cancelled, the event returns to the mailbox. A nil Mailbox is empty.
type Mailbox struct {
	tasks    *tasks.Set
	payloads *loading.Loader
	arrived  int
	free     map[string][]*event      // by name, in the order of arrival
	waiting  map[string][]*tasks.Task // by name, in the order of subscription
	held     map[*tasks.Task]*event   // by settled tasks that the code has not observed
	seen     map[string]struct{}
	ids      []string // seen, oldest first
	ends     *ends    // nil if they are not recorded
}

// New returns an empty Mailbox and registers it as the events of set. If recordEnds is true, the Mailbox records the
// ends of waits.
func New(set *tasks.Set, loader *loading.Loader, recordEnds bool) *Mailbox {
	m := &Mailbox{
		tasks:    set,
		payloads: loader,
		free:     map[string][]*event{},
		waiting:  map[string][]*tasks.Task{},
		held:     map[*tasks.Task]*event{},
		seen:     map[string]struct{}{},
	}
	if recordEnds {
		m.ends = &ends{place: map[int64]int{}}
	}
	set.SetEvents(m)
	return m
}

// Knows reports whether an event with this ID has arrived before. An event without an ID is always new.
func (m *Mailbox) Knows(id string) bool {
	if m == nil || id == "" {
		return false
	}
	_, ok := m.seen[id]
	return ok
}

// Remember records that an event with this ID has arrived.
func (m *Mailbox) Remember(id string) {
	if id != "" && !m.Knows(id) {
		m.seen[id] = struct{}{}
		m.ids = append(m.ids, id)
	}
}

// Inherit adds the events that the previous execution did not consume, from OrchestrationStarted.
func (m *Mailbox) Inherit(ev *history.Event) error {
	for i := range ev.CarriedEvents {
		if id := ev.CarriedEvents[i].EventID; !slices.Contains(ev.EventIDs, id) {
			m.Remember(id) // its event is older than the listed ones
		}
	}
	for _, id := range ev.EventIDs {
		m.Remember(id)
	}

	for i := range ev.CarriedEvents {
		at := history.DataLocation{EventID: ev.ID, Field: history.LocationCarriedEvents, Index: i}
		if err := m.Add(at, ev.CarriedEvents[i]); err != nil {
			return err
		}
	}
	return nil
}

// Add adds an event whose data is at a location of this execution.
func (m *Mailbox) Add(at history.DataLocation, e history.CarriedEvent) error {
	m.Remember(e.EventID)
	m.arrived++
	return m.deliver(&event{CarriedEvent: e, at: at, number: m.arrived})
}

// deliver passes an event to the first task that waits for it, or stores the event. Only a task needs the document of
// the event.
func (m *Mailbox) deliver(e *event) error {
	w := m.waiting[e.Name]
	if len(w) == 0 {
		at, _ := slices.BinarySearchFunc(m.free[e.Name], e, byArrival)
		m.free[e.Name] = slices.Insert(m.free[e.Name], at, e)
		return nil
	}

	m.waiting[e.Name] = w[1:]
	return m.give(e, w[0])
}

// give settles a task with an event.
func (m *Mailbox) give(e *event, t *tasks.Task) error {
	if !e.fetched {
		doc, encoded, err := m.payloads.Find(e.Data)
		if err != nil {
			return err
		}
		e.doc = doc
		e.encoded = encoded
		e.fetched = true
	}

	m.held[t] = e
	m.ends.received(t)
	m.tasks.SettleEvent(t, e.doc, e.encoded)
	return nil
}

// Subscribe passes the first free event of its name to a task, or makes the task wait for an event.
func (m *Mailbox) Subscribe(t *tasks.Task) error {
	free := m.free[t.Name()]
	if len(free) == 0 {
		m.waiting[t.Name()] = append(m.waiting[t.Name()], t)
		return nil
	}

	m.free[t.Name()] = free[1:]
	return m.give(free[0], t)
}

// Observe implements tasks.Events.
func (m *Mailbox) Observe(t *tasks.Task) { delete(m.held, t) }

// Holds implements tasks.Events.
func (m *Mailbox) Holds(t *tasks.Task) bool { return m.held[t] != nil }

// Cancel implements tasks.Events. Events that had arrived for the tasks are passed to the tasks that wait next, or
// return to their position in the mailbox.
func (m *Mailbox) Cancel(waits []*tasks.Task, f *history.Failure) error {
	var back []*event
	names := map[string]struct{}{}
	for _, t := range waits {
		if !t.IsOutstanding() {
			continue
		}
		e := m.held[t]
		if e != nil {
			delete(m.held, t)
			back = append(back, e)
		}
		m.ends.cancelled(t, f.Reason, e != nil)
		names[t.Name()] = struct{}{}
		m.tasks.CancelEvent(t, f)
	}
	for name := range names {
		m.waiting[name] = slices.DeleteFunc(m.waiting[name], (*tasks.Task).IsDone)
	}

	slices.SortFunc(back, byArrival)
	for _, e := range back {
		if err := m.deliver(e); err != nil { // it cannot fail: the document has been fetched
			return err
		}
	}
	return nil
}

// Waits implements tasks.Events. The tasks wait for an event, or have one that the code has not observed.
func (m *Mailbox) Waits() []*tasks.Task {
	var waits []*tasks.Task
	for _, waiting := range m.waiting {
		waits = append(waits, waiting...)
	}
	waits = slices.AppendSeq(waits, maps.Keys(m.held))
	return slices.DeleteFunc(waits, (*tasks.Task).IsShielded)
}

// EndWaits records that the remaining waits end with the execution.
func (m *Mailbox) EndWaits(end history.Kind) {
	if m == nil || m.ends == nil {
		return
	}
	left := slices.Concat(slices.Collect(maps.Values(m.waiting))...)
	slices.SortFunc(left, func(a, b *tasks.Task) int { return cmp.Compare(a.ID(), b.ID()) })
	for _, t := range left {
		m.ends.cancelled(t, history.TerminalReason(end), false)
	}
}

// EndTurn returns the waits that have ended in the turn.
func (m *Mailbox) EndTurn(now time.Time) []WaitEnd {
	if m == nil {
		return nil
	}
	return m.ends.endTurn(now)
}

// Bytes returns the approximate memory of the mailbox.
func (m *Mailbox) Bytes() int {
	if m == nil {
		return 0
	}
	const each = 128
	n := len(m.ids) * each
	for _, free := range m.free {
		for _, e := range free {
			n += each + e.bytes()
		}
	}
	for _, e := range m.held {
		n += each + e.bytes()
	}
	return n
}
