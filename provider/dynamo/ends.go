package dynamo

import (
	"cmp"
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An activity that is waited for when it is cancelled has ended when none of its code runs. Between two attempts none
// does: for an hour, or for ever if the schedule is deleted that was to bring the next attempt (R15). So the turn that
// gives the activity up reports its end itself.

// mostEnds is the number of ends in one message.
const mostEnds = 1000

// sendEnds sends an execution the ends of the activities that a turn has given up, whose end is waited for, and which
// wait for their next attempt. The turn is committed, so that no further attempt becomes the current one. An attempt
// that is not due has not begun, by any clock, and a worker that receives it later reads the cancel record first. The
// end of an attempt that is due is reported by the worker that receives its work item. One that is pending has no worker:
// whoever holds its token sends its end, and a timer sees to it that somebody does.
func (p *Provider) sendEnds(ctx context.Context, x provider.Origin, sequence int64, cancelled []history.OpenItem) error {
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
	var graces provider.Outputs
	for r, err := range p.retriesOf(ctx, x.ExecutionID, waits) {
		if err != nil {
			return err
		}
		if r.Pending != nil {
			graces.Timers = append(graces.Timers, p.graceOf(x, sequence, &r))
			continue
		}
		if !p.mayHaveBegun(r.At) {
			ends = append(ends, provider.ActivityOutcome{
				ActivityID: r.ActivityID, Attempt: r.Attempt - 1, Error: r.Error.Truncate(retryMessageBytes, 0), Ended: cmp.Or(r.Ended, history.OutcomeReturned),
			})
		}
	}

	var ms []provider.Message
	for len(ends) > 0 {
		n := min(len(ends), mostEnds)
		ms = append(ms, provider.Message{
			Kind: provider.MessageActivityOutcomes, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, Outcomes: ends[:n],
		})
		ends = ends[n:]
	}
	if err := p.EnqueueForOrchestrator(ctx, ms...); err != nil {
		return err
	}
	_, err := p.sendOutputs(ctx, &graces)
	return err
}

// graceOf is the timer by which a pending attempt is looked at that was cancelled just now, or before.
func (p *Provider) graceOf(x provider.Origin, sequence int64, r *provider.ActivityRetry) provider.Timer {
	at := p.now().Add(time.Duration(r.Pending.GraceMs) * time.Millisecond)
	if !r.NextCheckAt.IsZero() && r.NextCheckAt.Before(at) {
		at = r.NextCheckAt
	}
	return provider.Timer{
		V: provider.WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: r.ActivityID,
		FireAt: at, Attempt: r.Attempt, WaitForCancellation: true,
	}
}

// mayHaveBegun reports whether an attempt that is due at a time may have begun, by the clock of its worker.
func (p *Provider) mayHaveBegun(at time.Time) bool { return at.Sub(p.now()) <= clockSkew }
