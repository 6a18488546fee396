package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	at, _ := slices.BinarySearchFunc(m.free[r.Name], r, byArrival)
	m.free[r.Name] = slices.Insert(m.free[r.Name], at, r)
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
		x.deliver(r)
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
	return slices.DeleteFunc(tasks, func(t *Task) bool { return t.scope.shielded })
}

func byArrival(a, b *raised) int { return cmp.Compare(a.number, b.number) }

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
	slices.SortFunc(all, byArrival)
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
