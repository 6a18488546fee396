package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// Turn contains the decisions of a turn. They are committed as one segment and then sent.
type Turn struct {
	InstanceID string
	// Head is the head on which the turn was run. The commit fails with ErrConflict if it is not the head anymore.
	Head Head
	// Watermark is the position of the last message that the turn consumed, or Head.Watermark if it consumed none.
	Watermark Position
	Events    []history.Event
	// Before is the state before the turn, with its waiting timers (history.TrackTimers), or nil if it is not known. Do
	// not change Before while the provider uses the turn.
	Before *history.State
	// Cancels are the cancel decisions of this turn, or nil if the turn cancels nothing. They are committed with the
	// segment. Decisions of earlier turns stay in effect.
	Cancels Cancels
	// CancelsAfter is set for a turn that cancels activities. It is the segment of the last earlier turn that cancelled
	// activities, or 0 if no earlier turn did. It is nil if the segment is not known. Readers use it to detect an
	// earlier decision that is not visible yet.
	CancelsAfter *int64
	// CancelBlock is the block that this turn completes, or nil. A provider can store the block to shorten later reads,
	// or ignore it.
	CancelBlock *CancelBlock
	// Running are the activities of this turn that the committing process runs. No work items are sent for them at the
	// commit. If the process does not report their outcomes, a redispatch sends them (R20).
	Running map[int64]bool
	// Next is the execution that the turn continues as. It is created in the same transaction as the segment (R3).
	Next *Successor
	// Retention is the time for which an ended instance and past executions are kept. 0 means forever.
	Retention time.Duration
	// LockedUntil is the time at which the lock on the instance expires. The turn is not committed after that time.
	// Zero means that the time is not known.
	LockedUntil time.Time
	// StatusWrite selects whether the new status is written to the instance.
	StatusWrite StatusWrite
}

// StatusWrite selects whether a turn writes the instance's status. Terminal statuses and Blocked are always written
// (R9, R18).
type StatusWrite int

const (
	// StatusWriteIfChanged writes the status if the turn changed it or set a custom status.
	StatusWriteIfChanged StatusWrite = iota
	// StatusWriteDeferred does not write the status, because a later turn of the same session writes it.
	StatusWriteDeferred
	// StatusWriteAlways writes the status, because an earlier turn did not write it.
	StatusWriteAlways
)

// Successor is the execution that continues another execution as new.
type Successor struct {
	ExecutionID string
	Start       history.Event
}

// Segment returns the first segment of the execution. watermark is the watermark of the previous execution's last turn.
func (n *Successor) Segment(watermark Position) Segment {
	return Segment{Watermark: watermark, Events: []history.Event{n.Start}}
}

// Summaries returns the state of the execution before and after the turn.
func (t *Turn) Summaries() (before, after history.Summary) {
	if t.Before != nil {
		before = t.Before.Summary
	}
	return before, before.After(t.Events...)
}

// Changes reports whether the turn changes the instance's status or custom status.
func (t *Turn) Changes() bool {
	before, after := t.Summaries()
	return after.StatusChanged(&before)
}

// ObsoleteTimers returns the items whose timers are unnecessary after the turn. These are cancelled timers, and
// activities whose next attempt may wait for a timer.
func (t *Turn) ObsoleteTimers() []history.OpenItem {
	if t.Before == nil {
		return nil
	}
	return t.Before.ObsoleteTimers(t.Events...)
}

// After returns the head after the commit. If the turn continues as new, it is the head of the next execution.
func (t *Turn) After() Head {
	if t.Next != nil {
		return Head{ExecutionID: t.Next.ExecutionID, Watermark: t.Watermark}
	}
	return Head{ExecutionID: t.Head.ExecutionID, Segment: t.Head.Segment + 1, Watermark: t.Watermark}
}

// Segment returns the segment that the turn commits.
func (t *Turn) Segment() Segment {
	return Segment{Sequence: t.Head.Segment + 1, Watermark: t.Watermark, Events: t.Events}
}
