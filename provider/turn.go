package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// Turn is what a turn of an orchestration decided, to be committed as one segment and then sent.
type Turn struct {
	InstanceID string
	// Head is the view the turn was run on. The commit fails with ErrConflict when it is not the head any more.
	Head Head
	// Watermark is the last message this turn consumed, or Head.Watermark when it consumed none.
	Watermark Position
	Events    []history.Event
	// Parent waits for the instance; nil when nobody does.
	Parent *history.Parent
	// Cancels is what this turn decides to cancel, and nothing of what earlier turns did: committed with the segment, behind theirs. What
	// they decided stands, whatever this turn says of the same activities. Nil when it cancels none.
	Cancels Cancels
	// CancelBlock is the block that this turn completes; nil for all but one turn in many. It decides nothing that the turns have not: a
	// provider may keep it, so that whoever reads from far back has less to read, or leave it.
	CancelBlock *CancelBlock
	// CancelledTimers are the timers that this turn cancels, which may be somewhere outside, and the activities that it gives up of which an
	// attempt may wait by one.
	CancelledTimers []TimerSpan
	// Cancelling: the instance has been asked to end, in this turn or before.
	Cancelling bool
	// CustomStatus is the last that the execution has set, in this turn or before; nil where it has set none.
	CustomStatus history.Payload
	// Unblocks: the instance was blocked until this turn.
	Unblocks bool
	// StaysBlocked: the instance was blocked before, in the build and for the reason that the turn's last event says. Its status
	// is as it was, and need not be written again.
	StaysBlocked bool
	// Next is the execution that a turn continues as: created with the segment, in one transaction (R3).
	Next *Successor
	// Retention is how long the instance is kept after its end, and its past executions after theirs; 0 is for ever.
	Retention time.Duration
	// LockedUntil is when the lock on the instance ends that the turn was run under: past it, it is not committed. Zero: unknown.
	LockedUntil time.Time
}

// Successor is an execution that begins where another ends.
type Successor struct {
	ExecutionID string
	Start       history.Event
}

// Segment is the first of the execution, whose predecessor's turn consumed messages up to watermark.
func (n *Successor) Segment(watermark Position) Segment {
	return Segment{Watermark: watermark, Events: []history.Event{n.Start}}
}

// Status is the status the instance has after the turn; changed is false when it is as before.
func (t *Turn) Status() (s RuntimeStatus, changed bool) {
	if s, ends := StatusAfter(t.last()); ends {
		return s, true
	}
	if t.last() == history.InputsParked {
		return StatusBlocked, !t.StaysBlocked
	}
	if t.Cancelling {
		return StatusCancelling, t.Unblocks || IsCancelling(t.Events)
	}
	return StatusRunning, t.Head.Segment == 0 || t.Unblocks
}

// CustomStatusOf is the last custom status that events set, or nil.
func CustomStatusOf(events []history.Event) (last history.Payload) {
	for i := range events {
		if events[i].Kind == history.CustomStatusSet {
			last = events[i].CustomStatus
		}
	}
	return last
}

// IsCancelling reports whether among these events is one that asks the instance to end.
func IsCancelling(events []history.Event) bool {
	return slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.CancelRequested })
}

func (t *Turn) last() history.Kind {
	if n := len(t.Events); n > 0 {
		return t.Events[n-1].Kind
	}
	return ""
}

// After is the head once the turn is committed: of the next execution, where there is one.
func (t *Turn) After() Head {
	if t.Next != nil {
		return Head{ExecutionID: t.Next.ExecutionID, Watermark: t.Watermark}
	}
	return Head{ExecutionID: t.Head.ExecutionID, Segment: t.Head.Segment + 1, Watermark: t.Watermark}
}

// Segment is what the turn adds to its execution's history.
func (t *Turn) Segment() Segment {
	return Segment{Sequence: t.Head.Segment + 1, Watermark: t.Watermark, Events: t.Events}
}

// Origin is the execution that outputs come from.
type Origin struct {
	InstanceID, ExecutionID string
	Parent                  *history.Parent
	// Ended: nobody waits for what the execution had scheduled. Only what outlives it still leaves: the starts of detached
	// orchestrations, and its own outcome.
	Ended bool
}

// Origin is where the turn's outputs come from.
func (t *Turn) Origin() Origin {
	return Origin{InstanceID: t.InstanceID, ExecutionID: t.Head.ExecutionID, Parent: t.Parent, Ended: t.last().Terminal()}
}

// Origin is where the outputs of an execution that was read come from.
func (o *Orchestration) Origin() Origin {
	return Origin{InstanceID: o.InstanceID, ExecutionID: o.Head.ExecutionID, Parent: o.Start().Parent, Ended: o.Last().Kind.Terminal()}
}
