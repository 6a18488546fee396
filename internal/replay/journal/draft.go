package journal

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// Draft holds the events of the running turn.
type Draft struct {
	now      time.Time       // the time of the turn, or of the last one
	events   []history.Event // to be committed
	consumed int             // messages; -1 until the parked inputs are taken, which are not a message
	large    bool            // payloads may be as large as a payload store allows
}

// turnEvents is the capacity for the events of an ordinary turn: an outcome, and the decisions that it causes.
const turnEvents = 4

// SetTime sets the time of the turn.
func (d *Draft) SetTime(now time.Time) { d.now = now }

// Now returns the time of the turn.
func (d *Draft) Now() time.Time { return d.now }

// SetLargePayloads sets whether payloads may be as large as a payload store allows.
func (d *Draft) SetLargePayloads(large bool) { d.large = large }

// LargePayloads reports whether payloads may be as large as a payload store allows.
func (d *Draft) LargePayloads() bool { return d.large }

func (d *Draft) isEmpty() bool { return len(d.events) == 0 }

// useBuffer uses buffer as the memory for the events. If buffer is nil, it allocates memory.
func (d *Draft) useBuffer(buffer []history.Event) {
	if cap(buffer) == 0 {
		buffer = make([]history.Event, 0, turnEvents)
	}
	d.events = buffer[:0]
}

// add adds an empty event with its ID and the time of the turn. The caller completes the event in place, because an
// Event is large, and a copy would make the stack of a coroutine grow.
func (d *Draft) add(id int64) *history.Event {
	n := len(d.events)
	d.events = slices.Grow(d.events, 1)[:n+1]
	d.events[n] = history.Event{} // the memory may have been used before
	d.events[n].ID = id
	d.events[n].Time = d.now
	return &d.events[n]
}

// ExpectParked makes the first message of the turn the parked inputs, which do not count as a message.
func (d *Draft) ExpectParked() { d.consumed = -1 }

// RecordParked records in TurnStarted the number of parked inputs that the turn takes instead of messages.
func (d *Draft) RecordParked(n int) { d.events[0].ParkedConsumed = int64(n) }

// StartMessage counts a message, or the parked inputs. Call it before the inputs are applied, because code that ends
// with Goexit also ends the goroutine of the turn.
func (d *Draft) StartMessage() { d.consumed++ }

// TakesParked reports whether the inputs that are being applied were parked.
func (d *Draft) TakesParked() bool { return d.consumed == 0 }

// Release returns the events of the turn and the number of consumed messages, and prepares for the next turn.
func (d *Draft) Release() (events []history.Event, consumed int) {
	events = d.events
	consumed = max(d.consumed, 0)
	*d = Draft{now: d.now, large: d.large}
	return events, consumed
}
