package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
)

// carriedEventIDs is how many ids of external events the next execution is told, so that it knows duplicates (R3).
const carriedEventIDs = 256

// raised is an external event that the code has not observed yet.
type raised struct {
	history.CarriedEvent
	at     history.Place   // of its data, in this execution
	doc    json.RawMessage // its data, once somebody waits for it
	open   bool            // doc is known
	number int             // in the order of arrival
}

// mailbox holds the external events of an execution, and who waits for them. An event goes to the first that waits
// for its name, else it lies there. What its task does not observe, because it loses a race or is cancelled, comes back.
type mailbox struct {
	arrived int
	free    map[string][]*raised // by name, in the order of arrival
	waiting map[string][]*Task   // by name, in the order of subscription
	held    map[*Task]*raised    // by tasks that have settled and that nobody has looked at
	seen    map[string]struct{}
	ids     []string // seen, oldest first
}

func newMailbox() *mailbox {
	return &mailbox{
		free: map[string][]*raised{}, waiting: map[string][]*Task{}, held: map[*Task]*raised{}, seen: map[string]struct{}{},
	}
}

// events is the execution's mailbox; most never need one.
func (x *execution) events() *mailbox {
	if x.mail == nil {
		x.mail = newMailbox()
	}
	return x.mail
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
func (x *execution) inherit(ev *history.Event) error {
	if len(ev.CarriedEvents) == 0 && len(ev.EventIDs) == 0 {
		return nil
	}
	m := x.events()
	for i := range ev.CarriedEvents {
		if id := ev.CarriedEvents[i].EventID; !slices.Contains(ev.EventIDs, id) {
			m.remember(id) // older than those that are listed
		}
	}
	for _, id := range ev.EventIDs {
		m.remember(id)
	}
	for i := range ev.CarriedEvents {
		if err := x.raise(history.Place{EventID: ev.ID, Field: history.PlaceCarried, Index: i}, ev.CarriedEvents[i]); err != nil {
			return err
		}
	}
	return nil
}

// raise delivers an event, whose data lies at a place of this execution.
func (x *execution) raise(at history.Place, e history.CarriedEvent) error {
	m := x.events()
	m.remember(e.EventID)
	m.arrived++
	return x.deliver(&raised{CarriedEvent: e, at: at, number: m.arrived})
}

// deliver gives an event to who waits for it, or keeps it. Only who waits needs its document.
func (x *execution) deliver(r *raised) error {
	m := x.mail
	w := m.waiting[r.Name]
	if len(w) == 0 {
		at, _ := slices.BinarySearchFunc(m.free[r.Name], r, byArrival)
		m.free[r.Name] = slices.Insert(m.free[r.Name], at, r)
		return nil
	}
	m.waiting[r.Name] = w[1:]
	return x.give(r, w[0])
}

// give settles a task with an event.
func (x *execution) give(r *raised, t *Task) error {
	if !r.open {
		doc, err := x.documentOf(r.Data)
		if err != nil {
			return err
		}
		r.doc, r.open = doc, true
	}
	x.mail.held[t] = r
	x.settle(t, r.doc, nil)
	return nil
}

// WaitForExternalEvent decides to take the next event of that name, which may have arrived already.
func (c *Context) WaitForExternalEvent(name string) *Task {
	c.x.enter()
	if c.scope.cancelled != nil {
		return c.tooLate(name)
	}
	ev, _ := c.x.decide(decision{kind: history.ExternalEventSubscribed, name: name})
	t := &Task{x: c.x, id: ev.ID, kind: ev.Kind, name: name}
	m := c.x.events()
	c.scope.adopt(t)
	if free := m.free[name]; len(free) > 0 {
		m.free[name] = free[1:]
		if err := c.x.give(free[0], t); err != nil {
			c.x.fail(err)
		}
	} else {
		m.waiting[name] = append(m.waiting[name], t)
	}
	return t
}

// observe consumes the task's event: the code has been told of it.
func (x *execution) observe(t *Task) {
	if t.kind == history.ExternalEventSubscribed {
		delete(x.mail.held, t)
	}
}

// giveUpEvents cancels waits for events, but for those whose events the code was told of. Events that have arrived for the others go
// to who waits next, or back to their places in the queue.
func (x *execution) giveUpEvents(tasks []*Task, f *history.Failure) {
	if len(tasks) == 0 {
		return
	}
	m := x.mail
	var back []*raised
	names := map[string]struct{}{}
	for _, t := range tasks {
		if !t.outstanding() {
			continue
		}
		if r := m.held[t]; r != nil {
			delete(m.held, t)
			back = append(back, r)
		}
		t.cancelled = true
		names[t.name] = struct{}{}
		x.untaken -= len(t.result)
		x.settle(t, nil, f)
	}
	for name := range names {
		m.waiting[name] = slices.DeleteFunc(m.waiting[name], (*Task).IsDone)
	}
	slices.SortFunc(back, byArrival)
	for _, r := range back {
		if err := x.deliver(r); err != nil { // it cannot fail: the document has been fetched
			x.void = err
		}
	}
}

// waits are the tasks that an event may have to be taken back from when the instance is cancelled.
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

// unobserved are the events that nobody has observed, in the order of arrival.
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

// inline is how much the data takes of the events that nobody waits for.
func (m *mailbox) inline() (n int) {
	for _, free := range m.free {
		for _, r := range free {
			n += len(r.Data)
		}
	}
	return n
}

// lastIDs are the ids that the next execution must know.
func (m *mailbox) lastIDs() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.ids[max(0, len(m.ids)-carriedEventIDs):])
}

// bytes is roughly what the mailbox takes.
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

// bytes is what the event's data takes: its document is part of that, or was fetched besides.
func (r *raised) bytes() int {
	if _, inline := r.Data.Document(); inline {
		return len(r.Data)
	}
	return len(r.Data) + len(r.doc)
}
