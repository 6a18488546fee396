package replay

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// draft is what the turn under way has come to.
type draft struct {
	now       time.Time       // the time of the turn, or of the last one
	events    []history.Event // to be committed
	consumed  int             // the messages that were used up; -1 while the parked inputs, which are no message, are still to come
	continued *Continuation   // what the next execution takes over
	large     bool            // the turn takes large payloads
}

// turnEvents has room for the commonest turn: a result, and what is decided on it.
const turnEvents = 4

// setTime sets the time of the turn.
func (d *draft) setTime(now time.Time) { d.now = now }

// setLarge notes whether the turn takes large payloads.
func (d *draft) setLarge(large bool) { d.large = large }

// isEmpty reports whether the turn has nothing to commit yet.
func (d *draft) isEmpty() bool { return len(d.events) == 0 }

// makeRoom makes room for the events of most turns: what the caller has of it, or new.
func (d *draft) makeRoom(room []history.Event) {
	if cap(room) == 0 {
		room = make([]history.Event, 0, turnEvents)
	}
	d.events = room[:0]
}

// add adds an empty event with its id and the time of the turn. An Event is large: it is filled in where it lies, so that no coroutine's stack
// must have room for one.
func (d *draft) add(id int64) *history.Event {
	n := len(d.events)
	d.events = slices.Grow(d.events, 1)[:n+1]
	d.events[n] = history.Event{} // the room may have been used before
	d.events[n].ID = id
	d.events[n].Time = d.now
	return &d.events[n]
}

// startWithParked notes that parked inputs come before the first message.
func (d *draft) startWithParked() { d.consumed = -1 }

// recordParked records in TurnStarted how many parked inputs the turn takes, instead of messages.
func (d *draft) recordParked(n int) { d.events[0].ParkedConsumed = int64(n) }

// startMessage counts a message, or the parked inputs. That happens before it is applied: code that ends by Goexit does not come back to the turn.
func (d *draft) startMessage() { d.consumed++ }

// isParked reports whether the inputs that are being applied were parked.
func (d *draft) isParked() bool { return d.consumed == 0 }

// setContinuation records what the next execution takes over.
func (d *draft) setContinuation(c *Continuation) { d.continued = c }

// handOver returns what the turn has come to, and forgets it.
func (d *draft) handOver() (events []history.Event, consumed int, continued *Continuation) {
	events = d.events
	consumed = max(d.consumed, 0)
	continued = d.continued
	*d = draft{now: d.now, large: d.large}
	return events, consumed, continued
}
