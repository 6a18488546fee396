package journal

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/loading"
)

// Cursor is the position of an execution in its history. During a replay, it moves over the past. Later, it assigns IDs
// to the events of turns.
type Cursor struct {
	options   *Options
	payloads  *loading.Loader
	replaying bool
	past      []history.Event // nil unless replaying
	at        int             // the index of the next event of past
	lastID    int64           // the last event that was replayed or added
	decidedBy string          // the build that made the next decisions of the past
	differing Differences
	versions  versions // nil until the code requests one
}

// Start starts a replay of the events that follow the last one.
func (c *Cursor) Start(past []history.Event) {
	c.replaying = true
	c.past = past
	c.at = 0
}

// Finish ends a replay and releases the past.
func (c *Cursor) Finish() {
	c.replaying = false
	c.past = nil
	c.at = 0
}

// Replaying reports whether a replay is running.
func (c *Cursor) Replaying() bool { return c.replaying }

// Done reports whether all events of the past are applied.
func (c *Cursor) Done() bool { return c.at == len(c.past) }

// Next returns the next event of the past, or nil.
func (c *Cursor) Next() *history.Event {
	if c.Done() {
		return nil
	}
	return &c.past[c.at]
}

// Remaining returns the events of the past that are not applied.
func (c *Cursor) Remaining() []history.Event { return c.past[c.at:] }

// Position returns the number of applied events of the past.
func (c *Cursor) Position() int { return c.at }

// LastID returns the ID of the last event that was replayed or added.
func (c *Cursor) LastID() int64 { return c.lastID }

// Pass moves the cursor behind the next event.
func (c *Cursor) Pass() {
	c.lastID = c.past[c.at].ID
	c.at++
}

// PassAll moves the cursor behind the last event.
func (c *Cursor) PassAll() {
	c.lastID = c.past[len(c.past)-1].ID
	c.at = len(c.past)
}

// Assign returns the ID of an event that is added to the history.
func (c *Cursor) Assign() int64 {
	c.lastID++
	return c.lastID
}

// SetBuild sets the build that made the next decisions of the past.
func (c *Cursor) SetBuild(buildID string) { c.decidedBy = buildID }

// Differences returns the inputs of this code that differ from the inputs recorded by another build.
func (c *Cursor) Differences() Differences { return c.differing }

// match returns the next event of the past if it records the decision, and moves the cursor behind that event.
func (c *Cursor) match(d *Decision) (*history.Event, error) {
	ev := c.Next()
	if ev == nil || !d.is(ev) {
		return nil, c.divergenceOf(d)
	}

	if d.Input != nil {
		same, err := c.sameInput(ev, d.Input)
		if err == nil && !same {
			err = c.differ(d, ev)
		}
		if err != nil {
			return nil, err
		}
	}

	c.Pass()
	return ev, nil
}

// Divergence returns the error for code whose request differs from the next event of the past, or that makes no
// request.
func (c *Cursor) Divergence(got string) *NondeterminismError {
	want := c.Next()
	if want == nil {
		return c.options.nondeterminism(c.lastID, "no further event", got)
	}

	expected := Describe(want)
	if IsInput(want) {
		expected = "no further decision before " + expected
	}
	return c.options.nondeterminism(want.ID, expected, got)
}

// divergenceOf returns the divergence of a decision. Long lists of IDs are shown from the first difference on.
func (c *Cursor) divergenceOf(d *Decision) *NondeterminismError {
	ev := c.Next()
	if ev == nil {
		return c.Divergence(d.String())
	}

	want := decisionOf(ev)
	same := 0
	for same < min(len(d.Sources), len(want.Sources)) && d.Sources[same] == want.Sources[same] {
		same++
	}

	e := c.Divergence(d.describe(same))
	if len(want.Sources) > maxRanges {
		e.Expected = want.describe(same)
	}
	return e
}
