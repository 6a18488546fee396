package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// CancelInfo is whether an activity is cancelled, and why. The zero value: it is not.
type CancelInfo struct {
	Requested bool
	// Reason is one of the reasons that history holds; Message is the text of whoever asked.
	Reason, Message string
	// RequestedAt is the time of the turn that decided it.
	RequestedAt time.Time
	// Ended: it is cancelled since its execution has ended, so nobody waits for its end. Its reason does not say so: a child is
	// cancelled for that of the end of its parent.
	Ended bool
	// Deleted: the instance is deleted, by now or since. Nobody will read what a worker would leave of the activity.
	Deleted bool
}

// Renewal is what came of renewing a work item's lock.
type Renewal struct {
	// Lost: the lock is over, and somebody else may have the work item.
	Lost bool
	// Cancel is whether the activity is cancelled. Its lock is extended all the same: to end takes time too.
	Cancel CancelInfo
}

// ActivityCancel is one decision to cancel activities of an execution.
type ActivityCancel struct {
	// IDs are the activities. Open is all there are and ever will be, as when the execution is over: then IDs is empty.
	IDs  []history.Range
	Open bool
	// Reason and Message are as in history.
	Reason, Message string
	// At is the time of the turn.
	At time.Time
}

// Cancels are decisions of an execution, in order: those of a turn, or its cancel record, which is what all turns have decided.
type Cancels []ActivityCancel

// CancelBlockTurns is how many turns that cancel activities make a block.
const CancelBlockTurns = 64

// CancelBlock is what the turns of an execution have decided that cancelled activities, one such turn after the other, since the block
// before was complete. It derives from history, so whoever has that comes to the same.
type CancelBlock struct {
	// After is the segment of the turn that completed the block before; 0 where there is none.
	After int64
	// Turns is how many there are; Cancels is what they decided.
	Turns   int
	Cancels Cancels
}

// Add takes in what the turn of a segment decided, and returns the block that it completes, or nil.
func (b CancelBlock) Add(segment int64, own Cancels) (next CancelBlock, complete *CancelBlock) {
	if len(own) == 0 {
		return b, nil
	}
	b.Turns++
	b.Cancels = append(slices.Clip(b.Cancels), own...)
	if b.Turns < CancelBlockTurns {
		return b, nil
	}
	return CancelBlock{After: segment}, &b
}

// Of is what the record says of an activity: the first decision that concerns it.
func (c Cancels) Of(activityID int64) CancelInfo {
	for i := range c {
		if c[i].concerns(activityID) {
			return CancelInfo{Requested: true, Reason: c[i].Reason, Message: c[i].Message, RequestedAt: c[i].At, Ended: c[i].Open, Deleted: c.deleted()}
		}
	}
	return CancelInfo{}
}

func (c *ActivityCancel) concerns(id int64) bool {
	if c.Open {
		return true
	}
	for _, r := range c.IDs {
		if r.First <= id && id <= r.Last {
			return true
		}
	}
	return false
}

// CancelsOf reads the decisions to cancel activities off the events of a history, or of a turn. An execution that ends with
// work outstanding ends with one that is open: what was sent for it is nobody's, whatever its id (R12).
func CancelsOf(events []history.Event) (all Cancels) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityCancelRequested {
			continue
		}
		c := ActivityCancel{IDs: e.SourceEventIDs, Reason: e.Reason, Message: history.CutCancelMessage(e.Message), At: e.Time}
		if e.SourceEventID != 0 {
			c.IDs = []history.Range{{First: e.SourceEventID, Last: e.SourceEventID}}
		}
		if e.RequestedBy == history.RequestedByEngine && endsWith(events, i) {
			c.IDs, c.Open = nil, true
		}
		all = append(all, c)
	}
	return all
}

// endsWith reports whether only cancellations stand between an event and the end of its execution.
func endsWith(events []history.Event, i int) bool {
	for _, e := range events[i+1:] {
		switch e.Kind {
		case history.TimerCancelled, history.SubOrchestrationCancelRequested, history.ActivityCancelRequested:
		default:
			return e.Kind.Terminal()
		}
	}
	return false
}
