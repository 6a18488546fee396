package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// Turn is what a turn of an orchestration decided, to be committed as one segment and then sent.
type Turn struct {
	InstanceID string
	// Head is the view on which the turn was run. The commit fails with ErrConflict when it is not the head any more.
	Head Head
	// Watermark is the last message this turn consumed, or Head.Watermark when it consumed none.
	Watermark Position
	Events    []history.Event
	// Before is the state of the history on which the turn was run, with its waiting timers (history.KeepTimers). From
	// it a provider derives what the turn changes. It is not changed while the provider has the turn. Nil: the state is
	// not known.
	Before *history.State
	// Cancels is what this turn decides to cancel, without the decisions of earlier turns; it is committed with the
	// segment, behind theirs. Earlier decisions stand, whatever this turn decides about the same activities. Nil when
	// it cancels nothing.
	Cancels Cancels
	// CancelsAfter is, for a turn that cancels activities, the segment of the last turn before it that did; 0 where
	// there is none, nil where that is not known. It is stored with the turn's decisions, so that a reader can
	// recognise that an earlier decision is not visible to him yet.
	CancelsAfter *int64
	// CancelBlock is the block that this turn completes; nil for all but one turn in many. It adds no decision to those
	// of the turns: a provider may store it, so that a reader that starts far back has less to read, or ignore it.
	CancelBlock *CancelBlock
	// Running are activities of these events that the committing process runs itself: nothing is sent for them now. Should
	// the process not come to report an outcome, a repeated dispatch sends them (R20).
	Running map[int64]bool
	// Next is the execution that the turn continues as: created with the segment, in one transaction (R3).
	Next *Successor
	// Retention is how long the instance is kept after its end, and its past executions after theirs; 0 is for ever.
	Retention time.Duration
	// LockedUntil is when the lock on the instance ends under which the turn was run; after it the turn is not
	// committed. Zero: not known.
	LockedUntil time.Time
	// Show is when the status that the turn leaves is written to the instance.
	Show Showing
}

// Showing says whether a turn writes the instance's status, which is a projection of its history. An end, and that the instance is blocked, are written
// always: something depends on them (R9, R18).
type Showing int

const (
	// ShowChanges writes the status where the turn has changed it, or set a custom status.
	ShowChanges Showing = iota
	// ShowLater writes none: the process goes on at once, and a later turn does.
	ShowLater
	// ShowAlways writes it as history has it: an earlier turn has left it to this one.
	ShowAlways
)

// Successor is an execution that begins where another ends.
type Successor struct {
	ExecutionID string
	Start       history.Event
}

// Segment returns the first segment of the execution, whose predecessor's turn consumed messages up to watermark.
func (n *Successor) Segment(watermark Position) Segment {
	return Segment{Watermark: watermark, Events: []history.Event{n.Start}}
}

// Standings returns where the execution stands before the turn and after it.
func (t *Turn) Standings() (before, after history.Standing) {
	if t.Before != nil {
		before = t.Before.Standing
	}
	return before, before.After(t.Events...)
}

// Changes reports whether the turn changes what is shown of the instance: its status, or its custom status.
func (t *Turn) Changes() bool {
	before, after := t.Standings()
	return after.Shows(&before)
}

// Needless returns what the turn leaves without a purpose outside: the timers that it cancels, and the activities that
// it gives up, whose next attempt may wait by a timer.
func (t *Turn) Needless() []history.Open {
	if t.Before == nil {
		return nil
	}
	return t.Before.Needless(t.Events...)
}

func (t *Turn) last() history.Kind {
	if n := len(t.Events); n > 0 {
		return t.Events[n-1].Kind
	}
	return ""
}

// After returns the head once the turn is committed: the next execution's, where there is one.
func (t *Turn) After() Head {
	if t.Next != nil {
		return Head{ExecutionID: t.Next.ExecutionID, Watermark: t.Watermark}
	}
	return Head{ExecutionID: t.Head.ExecutionID, Segment: t.Head.Segment + 1, Watermark: t.Watermark}
}

// Segment returns what the turn adds to its execution's history.
func (t *Turn) Segment() Segment {
	return Segment{Sequence: t.Head.Segment + 1, Watermark: t.Watermark, Events: t.Events}
}

// Origin identifies the execution that outputs come from.
type Origin struct {
	InstanceID, ExecutionID string
	// StartID is that of the instance's start.
	StartID string
	Parent  *history.Parent
	// Ended reports that nothing the execution has scheduled is waited for any more. Only what outlives it is still
	// sent: the starts of detached orchestrations, the answers to updates, and its own outcome.
	Ended bool

	trace history.TraceParent // of the segment
}

// Origin returns where the turn's outputs come from.
func (t *Turn) Origin() Origin {
	x := Origin{InstanceID: t.InstanceID, ExecutionID: t.Head.ExecutionID, Ended: t.last().Terminal()}
	if t.Before != nil {
		x.Parent = t.Before.Parent
		x.StartID = t.Before.StartID
	}
	return x
}

// Origin returns where the outputs of an execution that was read come from.
func (o *Orchestration) Origin() Origin {
	return Origin{InstanceID: o.InstanceID, ExecutionID: o.Head.ExecutionID, StartID: o.Start().StartID, Parent: o.Start().Parent, Ended: o.Last().Kind.Terminal()}
}
