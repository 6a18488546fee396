package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/payloads"
)

const (
	// carriedInline is the total size up to which carried data is copied. The rest is referenced.
	carriedInline = 64 << 10
	// referenceBytes is the approximate size of a reference. Smaller data is always copied.
	referenceBytes = 256
)

// carriedEventIDs is how many ids of external events are carried over to the next execution, which drops duplicates by them (R3).
const carriedEventIDs = 256

// raised is an external event that the code has not observed yet.
type raised struct {
	history.CarriedEvent
	at      history.DataLocation // of its data, in this execution
	doc     json.RawMessage      // its data, once a task waits for it: its document, or the sealed payload
	fetched bool                 // doc is known
	sealed  bool                 // doc is a sealed payload
	number  int                  // in the order of arrival
}

// mailbox holds the external events of an execution, and the tasks that wait for them. An event goes to the first task that waits for its name,
// else it lies free. One that its task does not observe, because the task loses a race or is cancelled, comes back. A nil mailbox is empty.
type mailbox struct {
	tasks   *tasks
	arrived int
	free    map[string][]*raised // by name, in the order of arrival
	waiting map[string][]*Task   // by name, in the order of subscription
	held    map[*Task]*raised    // by tasks that have settled and that the code has not observed
	seen    map[string]struct{}
	ids     []string  // seen, oldest first
	ends    *waitEnds // nil where nobody asks
}

func newMailbox(t *tasks) *mailbox {
	var ends *waitEnds
	if t.recordWaitEnds {
		ends = &waitEnds{place: map[int64]int{}}
	}
	return &mailbox{
		ends:    ends,
		tasks:   t,
		free:    map[string][]*raised{},
		waiting: map[string][]*Task{},
		held:    map[*Task]*raised{},
		seen:    map[string]struct{}{},
	}
}

// knows reports whether an event of that id has arrived before. An event without an id is always new.
func (m *mailbox) knows(id string) bool {
	if m == nil || id == "" {
		return false
	}
	_, ok := m.seen[id]
	return ok
}

func (m *mailbox) remember(id string) {
	if id != "" && !m.knows(id) {
		m.seen[id] = struct{}{}
		m.ids = append(m.ids, id)
	}
}

// inherit takes over what the execution before this one did not consume.
func (m *mailbox) inherit(ev *history.Event) error {
	for i := range ev.CarriedEvents {
		if id := ev.CarriedEvents[i].EventID; !slices.Contains(ev.EventIDs, id) {
			m.remember(id) // it is older than those that are listed
		}
	}
	for _, id := range ev.EventIDs {
		m.remember(id)
	}

	for i := range ev.CarriedEvents {
		if err := m.raise(history.DataLocation{EventID: ev.ID, Field: history.LocationCarriedEvents, Index: i}, ev.CarriedEvents[i]); err != nil {
			return err
		}
	}
	return nil
}

// raise takes an event in, whose data lies at a place of this execution.
func (m *mailbox) raise(at history.DataLocation, e history.CarriedEvent) error {
	m.remember(e.EventID)
	m.arrived++
	return m.deliver(&raised{CarriedEvent: e, at: at, number: m.arrived})
}

// deliver gives an event to the task that waits for it, or keeps it. Its document is needed only for a task.
func (m *mailbox) deliver(r *raised) error {
	w := m.waiting[r.Name]
	if len(w) == 0 {
		at, _ := slices.BinarySearchFunc(m.free[r.Name], r, byArrival)
		m.free[r.Name] = slices.Insert(m.free[r.Name], at, r)
		return nil
	}

	m.waiting[r.Name] = w[1:]
	return m.give(r, w[0])
}

// give settles a task with an event.
func (m *mailbox) give(r *raised, t *Task) error {
	if !r.fetched {
		doc, sealed, err := m.tasks.payloads.Find(r.Data)
		if err != nil {
			return err
		}
		r.doc = doc
		r.sealed = sealed
		r.fetched = true
	}

	m.held[t] = r
	m.ends.came(t)
	t.setSealed(r.sealed)
	m.tasks.settle(t, r.doc, nil)
	return nil
}

// subscribe gives a task the first free event of its name, or has it wait for one.
func (m *mailbox) subscribe(t *Task) error {
	free := m.free[t.name]
	if len(free) == 0 {
		m.waiting[t.name] = append(m.waiting[t.name], t)
		return nil
	}

	m.free[t.name] = free[1:]
	return m.give(free[0], t)
}

// observe consumes the task's event: the code has seen it.
func (m *mailbox) observe(t *Task) { delete(m.held, t) }

// holds reports whether the task has settled with an event that the code has not observed.
func (m *mailbox) holds(t *Task) bool { return m.held[t] != nil }

// cancel cancels waits for events, except those whose events the code has observed. Events that have arrived for the others go to the tasks
// that wait next, or back to their places in the queue.
func (m *mailbox) cancel(waits []*Task, f *history.Failure) error {
	var back []*raised
	names := map[string]struct{}{}
	for _, t := range waits {
		if !t.outstanding() {
			continue
		}
		r := m.held[t]
		if r != nil {
			delete(m.held, t)
			back = append(back, r)
		}
		m.ends.gaveUp(t, f.Reason, r != nil)
		names[t.name] = struct{}{}
		t.cancelled = true
		m.tasks.settle(t, nil, f)
	}
	for name := range names {
		m.waiting[name] = slices.DeleteFunc(m.waiting[name], (*Task).IsDone)
	}

	slices.SortFunc(back, byArrival)
	for _, r := range back {
		if err := m.deliver(r); err != nil { // it cannot fail: the document has been fetched
			return err
		}
	}
	return nil
}

// waits returns the tasks that the cancel of the instance ends: they wait for an event, or have one that the code has not observed.
func (m *mailbox) waits() []*Task {
	if m == nil {
		return nil
	}
	var tasks []*Task
	for _, waiting := range m.waiting {
		tasks = append(tasks, waiting...)
	}
	tasks = slices.AppendSeq(tasks, maps.Keys(m.held))
	return slices.DeleteFunc(tasks, func(t *Task) bool { return t.scope.shielded() })
}

func byArrival(a, b *raised) int { return cmp.Compare(a.number, b.number) }

// unobserved returns the events that the code has not observed, in the order of arrival.
func (m *mailbox) unobserved() []*raised {
	if m == nil {
		return nil
	}
	var all []*raised
	for _, free := range m.free {
		all = append(all, free...)
	}
	for _, r := range m.held {
		all = append(all, r)
	}
	slices.SortFunc(all, byArrival)
	return all
}

// carry returns the unobserved events as the next execution takes them over. Small documents are copied, up to a bound for all together; the
// others are referred to.
func (m *mailbox) carry() []history.CarriedEvent {
	all := m.unobserved()
	if len(all) == 0 {
		return nil
	}

	events := make([]history.CarriedEvent, len(all))
	copied := 0
	for i, r := range all {
		events[i] = r.CarriedEvent
		n := len(r.Data)
		if _, inline := r.Data.Referable(); !inline || n <= referenceBytes {
			continue
		}
		if n <= payloads.CopyLimit && copied+n <= carriedInline {
			copied += n
			continue
		}
		events[i].Data = m.tasks.payloads.Refer(r.at, r.Data)
	}
	return events
}

// lastIDs returns the ids that the next execution must know, but for some that are to come to it.
func (m *mailbox) lastIDs(without []string) []string {
	if m == nil {
		return nil
	}
	ids := slices.Clone(m.ids)
	if len(without) > 0 {
		skip := make(map[string]bool, len(without))
		for _, id := range without {
			skip[id] = true
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return skip[id] })
	}
	return slices.Clip(ids[max(0, len(ids)-carriedEventIDs):])
}

// shed replaces documents that wait in memory by references, beyond a bound.
func (m *mailbox) shed() {
	if m == nil || !m.tasks.payloads.CanRefer() || m.inline() <= payloads.MemoryLimit {
		return
	}
	kept := 0
	for _, r := range m.unobserved() {
		if kept += len(r.Data); kept > payloads.MemoryLimit && len(r.Data) > payloads.CopyLimit {
			r.Data = m.tasks.payloads.Refer(r.at, r.Data) // a task that holds the event has its document
		}
	}
}

// inline returns how many bytes the data of the free events takes.
func (m *mailbox) inline() (n int) {
	for _, free := range m.free {
		for _, r := range free {
			n += len(r.Data)
		}
	}
	return n
}

// bytes is roughly what the mailbox takes in memory.
func (m *mailbox) bytes() int {
	if m == nil {
		return 0
	}
	const each = 128
	n := len(m.ids) * each
	for _, e := range m.free {
		for _, r := range e {
			n += each + r.bytes()
		}
	}
	for _, r := range m.held {
		n += each + r.bytes()
	}
	return n
}

// bytes is what the event's data takes in memory. Its document is part of that, or was fetched besides.
func (r *raised) bytes() int {
	if _, inline := r.Data.Referable(); inline {
		return len(r.Data)
	}
	return len(r.Data) + len(r.doc)
}
