package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
)

// carriedEventIDs is how many ids of external events the next execution is told, so that it knows duplicates (R3).
const carriedEventIDs = 256

// raised is an external event that the code has not observed yet.
type raised struct {
	history.CarriedEvent
	doc    json.RawMessage
	number int // in the order of arrival
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
		if err := x.raise(ev.ID, ev.CarriedEvents[i]); err != nil {
			return err
		}
	}
	return nil
}

// raise delivers an event.
func (x *execution) raise(id int64, e history.CarriedEvent) error {
	doc, ok := e.Data.Document()
	if !ok {
		return fmt.Errorf("replay: instance %q: the data of an external event in event #%d was not fetched from where it lies", x.options.InstanceID, id)
	}
	m := x.events()
	m.remember(e.EventID)
	m.arrived++
	x.deliver(&raised{CarriedEvent: e, doc: doc, number: m.arrived})
	return nil
}

func (x *execution) deliver(r *raised) {
	m := x.mail
	if w := m.waiting[r.Name]; len(w) > 0 {
		m.waiting[r.Name] = w[1:]
		m.held[w[0]] = r
		x.settle(w[0], r.doc, nil)
		return
	}
	at, _ := slices.BinarySearchFunc(m.free[r.Name], r, func(a, b *raised) int { return cmp.Compare(a.number, b.number) })
	m.free[r.Name] = slices.Insert(m.free[r.Name], at, r)
}

// WaitForExternalEvent decides to take the next event of that name, which may have arrived already.
func (c *Context) WaitForExternalEvent(name string) *Task {
	c.x.enter()
	ev, _ := c.x.decide(decision{kind: history.ExternalEventSubscribed, name: name})
	t := &Task{x: c.x, id: ev.ID, kind: ev.Kind, name: name}
	m := c.x.events()
	if free := m.free[name]; len(free) > 0 {
		m.free[name] = free[1:]
		m.held[t] = free[0]
		c.x.settle(t, free[0].doc, nil)
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

// giveUp cancels the wait for an event. One that has arrived, and that the code was not told of, goes to who waits next, or back to
// its place in the queue. It reports false when there was nothing to give up.
func (x *execution) giveUp(t *Task, f *history.Failure) bool {
	m := x.mail
	r, held := m.held[t]
	if t.done && !held {
		return false
	}
	delete(m.held, t)
	m.waiting[t.name] = slices.DeleteFunc(m.waiting[t.name], func(w *Task) bool { return w == t })
	t.cancelled = true
	x.settle(t, nil, f)
	if held {
		x.deliver(r)
	}
	return true
}

// carried are the events that nobody has observed, in the order of arrival.
func (m *mailbox) carried() []history.CarriedEvent {
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
	slices.SortFunc(all, func(a, b *raised) int { return cmp.Compare(a.number, b.number) })
	events := make([]history.CarriedEvent, len(all))
	for i, r := range all {
		events[i] = r.CarriedEvent
	}
	return events
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
			n += each + len(r.doc)
		}
	}
	for _, r := range m.held {
		n += each + len(r.doc)
	}
	return n
}
