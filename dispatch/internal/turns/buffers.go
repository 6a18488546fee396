package turns

import (
	"sync"

	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// buffer holds the events of a turn: the inputs of its messages, and the events that it commits. Events are large, and
// reuse of buffers saves a quarter of the memory that a turn allocates.
//
// Only one turn uses a buffer at a time. The turn returns the buffer after it is committed and its outputs are sent,
// when there are no references to the events. A replay.Instance has no reference to a buffer after Turn has returned. A
// provider.Provider has no reference after it has committed the turn. Inline activities and outcomes that have arrived
// copy their events. The buffer of a failed turn is left to the garbage collector, because abandoned code may still
// write to it.
type buffer struct {
	inputs []history.Event
	groups [][]history.Event // of inputs, by message
	events []history.Event
}

const (
	// initialEvents is the initial capacity of a buffer. Most turns have no more events.
	initialEvents = 8
	// maxReusedEvents is the maximum number of events of a buffer that is reused.
	maxReusedEvents = 64
)

type buffers struct{ pool *sync.Pool }

func newBuffers() buffers {
	return buffers{&sync.Pool{New: func() any { return &buffer{events: make([]history.Event, 0, initialEvents)} }}}
}

func (p buffers) get() *buffer {
	b, _ := p.pool.Get().(*buffer)
	return b
}

// put returns the buffer of a turn that has committed events.
func (p buffers) put(b *buffer, events []history.Event) {
	if cap(events) > cap(b.events) {
		b.events = events // the events did not fit into the buffer
	}
	if cap(b.events) > maxReusedEvents || cap(b.inputs) > maxReusedEvents || cap(b.groups) > maxReusedEvents {
		return
	}
	b.events, b.inputs, b.groups = cleared(b.events), cleared(b.inputs), cleared(b.groups)
	p.pool.Put(b)
}

// cleared returns an empty slice with the memory of s, which holds no references.
func cleared[E any](s []E) []E {
	s = s[:cap(s)]
	clear(s)
	return s[:0]
}

// begin adds the inputs that precede all messages: the outputs that were refused.
func (b *buffer) begin(refused []history.Event) { b.groups = append(b.groups, refused) }

func (b *buffer) add(x *execution.Execution, m *provider.InboxMessage, a *attempts.Ledger) {
	before := len(b.inputs)
	b.inputs = messages.AppendInputs(b.inputs, x, m, a)
	b.groups = append(b.groups, b.inputs[before:len(b.inputs):len(b.inputs)])
}
