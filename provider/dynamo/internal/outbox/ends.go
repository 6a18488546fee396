package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/outputs"
)

// A cancelled activity whose end is awaited has ended when none of its code runs. Its code does not run between two
// attempts. This time can last for an hour, or forever if the schedule of the next attempt is deleted (R15). The turn
// that cancels the activity therefore reports its end itself.

// maxEndsPerMessage is the maximum number of ends in one message.
const maxEndsPerMessage = 1000

// SendActivityEnds sends the ends of the activities that a turn has cancelled, whose end is awaited, and that wait for
// their next attempt. The turn is committed, so no later attempt can become the current one. An attempt that is not due
// has not started, even if clocks differ. A worker that receives the attempt later reads the cancel record first. The
// worker that receives the work item of a due attempt reports its end. A pending attempt has no worker. Its token
// holder reports the end, and a timer limits the wait.
func (ob *Outbox) SendActivityEnds(
	ctx context.Context, x outputs.Origin, sequence int64, cancelled []history.OpenItem,
) error {
	waits := map[int64]bool{}
	for i := range cancelled {
		if o := &cancelled[i]; o.WaitsForCancellation {
			waits[o.ID] = true
		}
	}
	if len(waits) == 0 || x.Ended {
		return nil
	}

	var ends []provider.ActivityOutcome
	var gracePeriods outputs.Set
	for r, err := range activityrecords.ReadRetriesOf(ctx, ob.Attempts, x.ExecutionID, waits) {
		if err != nil {
			return err
		}
		if r.Pending != nil {
			gracePeriods.Timers = append(gracePeriods.Timers, ob.graceTimer(x, sequence, &r))
			continue
		}
		if !ob.Timers.MayHaveStarted(r.At) {
			ends = append(ends, provider.ActivityOutcome{
				ActivityID: r.ActivityID,
				Attempt:    r.Attempt - 1,
				Error:      r.Error.Truncate(activityrecords.RetryMessageBytes, 0),
				Ended:      cmp.Or(r.Ended, history.OutcomeReturned),
			})
		}
	}

	var ms []provider.Message
	for some := range slices.Chunk(ends, maxEndsPerMessage) {
		ms = append(ms, provider.Message{
			Kind:        provider.MessageActivityOutcomes,
			InstanceID:  x.InstanceID,
			ExecutionID: x.ExecutionID,
			Segment:     sequence,
			Outcomes:    some,
		})
	}
	if err := ob.Inbox.Send(ctx, ms...); err != nil {
		return err
	}
	_, err := ob.SendOutputs(ctx, &gracePeriods)
	return err
}

// graceTimer returns the timer that checks a pending attempt after a cancel.
func (ob *Outbox) graceTimer(x outputs.Origin, sequence int64, r *provider.ActivityRetry) provider.Timer {
	at := ob.now().Add(time.Duration(r.Pending.GraceMs) * time.Millisecond)
	if !r.NextCheckAt.IsZero() && r.NextCheckAt.Before(at) {
		at = r.NextCheckAt
	}
	return provider.Timer{
		V:                   provider.WireVersion,
		InstanceID:          x.InstanceID,
		ExecutionID:         x.ExecutionID,
		Segment:             sequence,
		TimerID:             r.ActivityID,
		FireAt:              at,
		Attempt:             r.Attempt,
		WaitForCancellation: true,
	}
}
