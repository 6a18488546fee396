package retries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
	"github.com/perdure/perdure/provider/outputs"
)

// maxCachedSends is the maximum number of sent attempts that a process caches. A message that could not be deleted is
// redelivered within minutes.
const maxCachedSends = 4096

// nextAttempt is an attempt to send.
type nextAttempt struct {
	activityID, segment int64
	number              int
	run                 string
	at                  time.Time
	again               bool
	ended               string // the CancelOutcome of an earlier, abandoned attempt
}

// send sends attempts with a delay or a timer.
func (c *request) send(ctx context.Context) ([]provider.OutputFailure, error) {
	var out outputs.Set
	var refused []provider.OutputFailure
	ended := map[int64]string{}

	for i := range c.sends {
		a := &c.sends[i]
		if a.again && c.retries.sent.Has(c.cacheKey(a)) {
			continue // this process has sent the attempt
		}
		left := a.at.Sub(c.retries.now())
		if left > c.retries.Queue.MaxDelay {
			out.Timers = append(out.Timers, c.timer(a))
			continue
		}

		w, err := c.retries.WorkItems.Find(ctx, c.InstanceID, c.Head.ExecutionID, a.segment, a.activityID)
		switch {
		case errors.Is(err, table.ErrDeleted):
			return nil, fmt.Errorf(
				"dynamo: instance %q: segment %d: %w: %w", c.InstanceID, a.segment, provider.ErrConflict, err,
			)
		case errors.Is(err, provider.ErrNotFound):
			refused = append(refused, workqueue.RejectOutput(a.activityID, "OutputRefusedError",
				"attempt %d: segment %d does not schedule this activity", a.number, a.segment))
			continue
		case err != nil:
			return nil, err
		case left > c.retries.WorkQueues.MaxDelay(&w):
			out.Timers = append(out.Timers, c.timer(a))
			continue
		}

		w.Attempt = a.number
		w.NotBefore = &a.at
		w.PossibleDuplicate = true
		out.WorkItems = append(out.WorkItems, w)
		if w.WaitForCancellation {
			ended[a.activityID] = cmp.Or(a.ended, history.OutcomeReturned)
		}
	}

	more, err := c.retries.Outbox.SendOutputs(ctx, &out)
	for i := range more { // an earlier attempt has run
		more[i].Ended = ended[more[i].EventID]
	}
	if refused = append(refused, more...); err == nil && len(refused) == 0 {
		for i := range c.sends {
			c.retries.sent.Add(c.cacheKey(&c.sends[i]), struct{}{}, 1)
		}
	}
	return refused, err
}

// timer returns the timer that starts an attempt.
func (c *request) timer(a *nextAttempt) provider.Timer {
	return provider.Timer{
		V: provider.WireVersion, InstanceID: c.InstanceID, ExecutionID: c.Head.ExecutionID, Segment: a.segment,
		TimerID: a.activityID, FireAt: a.at, Attempt: a.number,
	}
}

// cacheKey returns a key for an attempt that was sent for a failure.
func (c *request) cacheKey(a *nextAttempt) string {
	return fmt.Sprintf("%s %d %d %s", c.Head.ExecutionID, a.activityID, a.number, a.run)
}
