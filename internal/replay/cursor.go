package replay

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// cursor is where an execution stands in its history. While history is replayed it moves over the past, which each decision must match;
// afterwards it gives the events of a turn their ids.
type cursor struct {
	options   *Options
	payloads  *payloads.Loader
	replaying bool
	past      []history.Event // what is being replayed; nil while nothing is
	at        int             // the first event of past that is not applied
	lastID    int64           // of the event that was replayed or added last
	decidedBy string          // the build that decided on what is being replayed
	differing Differences     // what the code gives to others by now
	versions  versions        // of changes; nil until the code asks for one
}

// start begins a replay of events that follow those replayed before.
func (c *cursor) start(past []history.Event) {
	c.replaying = true
	c.past = past
	c.at = 0
}

// finish ends a replay. A suspended instance does not hold its history.
func (c *cursor) finish() {
	c.replaying = false
	c.past = nil
	c.at = 0
}

// over reports whether all of the past is applied.
func (c *cursor) over() bool { return c.at == len(c.past) }

// next returns the first event that is not applied; nil once the past is over.
func (c *cursor) next() *history.Event {
	if c.over() {
		return nil
	}
	return &c.past[c.at]
}

// last returns the last event of the past.
func (c *cursor) last() *history.Event { return &c.past[len(c.past)-1] }

// remaining returns the events that are not applied.
func (c *cursor) remaining() []history.Event { return c.past[c.at:] }

// pass moves behind the next event.
func (c *cursor) pass() {
	c.lastID = c.past[c.at].ID
	c.at++
}

// passAll moves behind the last event.
func (c *cursor) passAll() {
	c.lastID = c.last().ID
	c.at = len(c.past)
}

// assign returns the id of an event that is added to history.
func (c *cursor) assign() int64 {
	c.lastID++
	return c.lastID
}

// setBuild notes the build that decided on the events which follow.
func (c *cursor) setBuild(buildID string) { c.decidedBy = buildID }
