package provider

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// CancelInfo reports whether an activity is cancelled, and the reason. The zero value means that it is not cancelled.
type CancelInfo struct {
	// Requested is true if the activity is cancelled.
	Requested bool
	// Reason is one of the cancel reasons of package history. Message is the text of the caller who requested the
	// cancellation.
	Reason, Message string
	// RequestedAt is the time of the turn that decided the cancellation.
	RequestedAt time.Time
	// ExecutionEnded is true if the activity is cancelled because its execution has ended. No code waits for such an
	// activity.
	ExecutionEnded bool
	// Deleted is true if the instance is deleted or being deleted. Do not write records of the activity, because they
	// are never read.
	Deleted bool
}

// Renewal is the result of renewing the lock of a work item.
type Renewal struct {
	// Until is the earliest time at which the lock expires, according to the provider's clock. It is zero if the lock
	// was not extended.
	Until time.Time
	// Lost is true if the lock has expired, and another process may hold the work item.
	Lost bool
	// Err is ErrLockLimit or an *Error if the lock was not extended although it is not Lost. The call then did not
	// change the expiry of the lock.
	Err error
	// Cancel reports whether the activity is cancelled. The lock of a cancelled activity is also extended, because its
	// code needs time to return.
	Cancel CancelInfo
	// CancelErr is the error if the cancellation could not be read. Cancel is then unknown. The lock is not affected.
	CancelErr error
}

// ActivityCancel is one decision to cancel activities of an execution.
type ActivityCancel struct {
	// IDs are the cancelled activities.
	IDs []history.Range
	// All is true if all present and future activities of the execution are cancelled, for example because the
	// execution has ended. IDs is then empty.
	All bool
	// Reason and Message are described in package history.
	Reason, Message string
	// At is the time of the turn.
	At time.Time
}

// Cancels are the cancel decisions of one turn or of a whole execution, in order.
type Cancels []ActivityCancel

// CancelBlockTurns is the number of turns in a complete CancelBlock.
const CancelBlockTurns = 64

// CancelBlock contains the decisions of consecutive turns that cancelled activities, since the previous block was
// complete. It is derived from the history, so all readers of the history get the same block.
type CancelBlock struct {
	// After is the segment of the turn that completed the previous block, or 0.
	After int64
	// Last is the segment of the last turn in the block. If the block is empty, it is the segment of the last turn
	// before the block, or 0.
	Last int64
	// Turns is the number of turns in the block. Cancels are their decisions.
	Turns   int
	Cancels Cancels
}

// Add adds the decisions of a segment's turn and returns the block to continue with. complete is the complete block, or
// nil if the block is not complete.
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

// Of returns the first decision that cancels an activity, or the zero value.
func (c Cancels) Of(activityID int64) CancelInfo {
	for i := range c {
		if c[i].concerns(activityID) {
			return CancelInfo{
				Requested: true, Reason: c[i].Reason, Message: c[i].Message, RequestedAt: c[i].At,
				ExecutionEnded: c[i].All, Deleted: c.deleted(),
			}
		}
	}
	return CancelInfo{}
}

func (c *ActivityCancel) concerns(id int64) bool {
	if c.All {
		return true
	}
	for _, r := range c.IDs {
		if r.First <= id && id <= r.Last {
			return true
		}
	}
	return false
}

// CancelsOf returns the decisions to cancel activities in the events of a history or a turn. If an execution ends with
// outstanding work, the last decision cancels all activities (R12).
func CancelsOf(events []history.Event) (all Cancels) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityCancelRequested {
			continue
		}

		c := ActivityCancel{
			IDs: e.SourceEventIDs, Reason: e.Reason, Message: history.TruncateCancelMessage(e.Message), At: e.Time,
		}
		if e.SourceEventID != 0 {
			c.IDs = []history.Range{{First: e.SourceEventID, Last: e.SourceEventID}}
		}

		if e.RequestedBy == history.RequestedByEngine && endsWith(events, i) {
			c.IDs = nil
			c.All = true
		}

		all = append(all, c)
	}
	return all
}

// endsWith reports whether only cancellations and then the terminal event follow event i.
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
