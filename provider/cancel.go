package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// CancelInfo reports whether an activity is cancelled, and why. The zero value is an activity that is not.
type CancelInfo struct {
	Requested bool
	// Reason is one of the reasons that history holds; Message is the text of the caller who asked for the cancel.
	Reason, Message string
	// RequestedAt is the time of the turn that decided the cancel.
	RequestedAt time.Time
	// Ended reports that the activity is cancelled because its execution has ended, so nothing waits for its end. The
	// reason alone does not show it: when a parent ends, its child's cancel carries the reason of the parent's end.
	Ended bool
	// Deleted reports that the instance is deleted or being deleted. What a worker would store of the activity would
	// never be read.
	Deleted bool
}

// Renewal is the result of renewing a work item's lock.
type Renewal struct {
	// Until is the earliest time at which the lock ends, by the provider's clock; zero where it was not extended.
	Until time.Time
	// Lost reports that the lock is over, and another holder may have the work item.
	Lost bool
	// Err is why the lock was not extended, where it is not Lost: ErrLockLimit, or an *Error. The lock then ends when
	// it would have ended anyway.
	Err error
	// Cancel reports whether the activity is cancelled. The lock of a cancelled activity is extended too, since its
	// code needs time to end.
	Cancel CancelInfo
	// CancelErr is why the cancel could not be read. Cancel is then unknown, whatever became of the lock.
	CancelErr error
}

// ActivityCancel is one decision to cancel activities of an execution.
type ActivityCancel struct {
	// IDs are the activities. Open means all activities that there are and ever will be, as when the execution is over;
	// IDs is then empty.
	IDs  []history.Range
	Open bool
	// Reason and Message are as in history.
	Reason, Message string
	// At is the time of the turn.
	At time.Time
}

// Cancels are decisions of an execution, in order: those of one turn, or those of all turns, which are the cancel
// record.
type Cancels []ActivityCancel

// CancelBlockTurns is the number of turns with cancelled activities that make a block.
const CancelBlockTurns = 64

// CancelBlock holds the decisions of consecutive turns that cancelled activities, since the previous block was
// complete. It derives from history, so every reader of that history computes the same block.
type CancelBlock struct {
	// After is the segment of the turn that completed the previous block; 0 where there is none.
	After int64
	// Last is the segment of the last turn in the block, or of the last turn before it while the block is empty; 0
	// where there is none.
	Last int64
	// Turns is the number of turns in the block; Cancels is what they decided.
	Turns   int
	Cancels Cancels
}

// Add adds the decisions of a segment's turn, and returns the block that it completes, or nil.
func (b CancelBlock) Add(segment int64, own Cancels) (next CancelBlock, complete *CancelBlock) {
	if len(own) == 0 {
		return b, nil
	}
	b.Turns++
	b.Last = segment
	b.Cancels = append(slices.Clip(b.Cancels), own...)
	if b.Turns < CancelBlockTurns {
		return b, nil
	}

	return CancelBlock{After: segment, Last: segment}, &b
}

// Of returns what the record says of an activity: the first decision that concerns it.
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

// CancelsOf reads the decisions to cancel activities from the events of a history, or of a turn. An execution that ends
// with work outstanding ends with an open decision: no work item sent for it has a receiver any more, whatever its id
// (R12).
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
			c.IDs = nil
			c.Open = true
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
