package turns

import (
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// room is what the events of a turn lie in: those that its messages bring, and those that it commits. An Event is large, and rooms are used again: they
// were a quarter of what a turn allocated.
//
// A turn has its room for itself. It gives it back once it is committed, and all that it decided is sent: then nothing refers to those events. A
// replay.Instance does not once Turn has returned, and a provider.Provider does not once it has taken the turn. Whatever else keeps an event copies it:
// steps, and outcomes that have arrived. The room of a turn that has failed is left to the collector: code that was given up may still write into it.
type room struct {
	inputs []history.Event
	groups [][]history.Event // of inputs, by message
	events []history.Event
}

const (
	// newRoom is how many events most turns have.
	newRoom = 8
	// largestRoom is how many events a room has that is used again.
	largestRoom = 64
)

// rooms are those that no turn has.
type rooms struct{ unused *sync.Pool }

func newRooms() rooms {
	return rooms{&sync.Pool{New: func() any { return &room{events: make([]history.Event, 0, newRoom)} }}}
}

// take returns a room for one turn.
func (r rooms) take() *room {
	m, _ := r.unused.Get().(*room)
	return m
}

// giveBack takes back the room of a turn that is over, which has committed events.
func (r rooms) giveBack(m *room, events []history.Event) {
	if cap(events) > cap(m.events) {
		m.events = events // they had to move
	}
	if cap(m.events) > largestRoom || cap(m.inputs) > largestRoom || cap(m.groups) > largestRoom {
		return
	}
	m.events, m.inputs, m.groups = emptied(m.events), emptied(m.inputs), emptied(m.groups)
	r.unused.Put(m)
}

// emptied is a slice without what it holds.
func emptied[E any](s []E) []E {
	s = s[:cap(s)]
	clear(s)
	return s[:0]
}

// begin adds what comes before all messages: the outputs that were refused.
func (m *room) begin(refused []history.Event) { m.groups = append(m.groups, refused) }

// add adds what a message brings.
func (m *room) add(x *execution, message *provider.InboxMessage, attempts *attemptLedger) {
	before := len(m.inputs)
	m.inputs = x.inputsOf(m.inputs, message, attempts)
	m.groups = append(m.groups, m.inputs[before:len(m.inputs):len(m.inputs)])
}
