package dynamo

import (
	"cmp"
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An activity that is waited for when it is cancelled has ended when nothing of it runs. Between two attempts nothing does, for an hour, or
// for ever, should the schedule go that was to bring the next one (R15). So the turn that gives it up tells its end itself.

// mostEnds is how many ends one message tells.
const mostEnds = 1000

// tellEnds tells an execution the ends of those activities that a turn has given up, whose end is waited for, and which wait for their next
// attempt. The turn is committed, so that none becomes the current attempt any more; one that is not due has not begun, by any clock,
// and whoever gets it then looks at the cancel record first. Of what is due its work item leads to who tells.
func (p *Provider) tellEnds(ctx context.Context, x provider.Origin, sequence int64, cancelled []provider.TimerSpan) error {
	waits := map[int64]bool{}
	for _, span := range cancelled {
		if span.Waits && span.Retries {
			waits[span.TimerID] = true
		}
	}
	if len(waits) == 0 || x.Ended {
		return nil
	}
	var ends []provider.ActivityOutcome
	for r, err := range p.retriesOf(ctx, x.ExecutionID, waits) {
		if err != nil {
			return err
		}
		if !p.mayHaveBegun(r.At) {
			ends = append(ends, provider.ActivityOutcome{
				ActivityID: r.ActivityID, Attempt: r.Attempt - 1, Error: cutFailure(r.Error, 0), Ended: cmp.Or(r.Ended, history.EndReturned),
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
	return p.EnqueueForOrchestrator(ctx, ms...)
}

// mayHaveBegun reports whether an attempt may have begun that is due at a time, by the clock of its worker.
func (p *Provider) mayHaveBegun(at time.Time) bool { return at.Sub(p.now()) <= clockSkew }
