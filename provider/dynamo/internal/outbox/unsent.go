package outbox

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// unsentExecution is an execution whose outputs may not have been sent since the segment first.
type unsentExecution struct {
	*provider.Orchestration

	first int
}

// maxExecutions is the maximum number of executions that are searched for unsent outputs. For a message that the
// sweeper recovers, the search covers some minutes of executions.
const maxExecutions = 100

// unsentExecutions reads the executions with outputs that may not have been sent, the newest first: o and its previous
// executions (R4). Executions can be large, so only one is in memory in addition to o.
func (ob *Outbox) unsentExecutions(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) iter.Seq2[unsentExecution, error] {
	return func(yield func(unsentExecution, error) bool) {
		from, found := since.Position, since.HeadAt.IsZero()
		x := o
		for n := 1; ; n++ {
			if !found {
				from, found = watermarkAt(x, since.HeadAt)
			}
			if !yield(unsentExecution{x, firstSince(x, from)}, nil) || x.Previous == "" ||
				found && !x.Segments[0].Watermark.Covers(from) {
				return
			}
			if n == maxExecutions {
				ob.log.ErrorContext(ctx, "redispatch limit reached, outputs of older executions may be missing",
					"event", logevent.RedispatchIncomplete, "instance", x.InstanceID, "execution", o.Head.ExecutionID,
					"executions", n, "since", since.HeadAt)
				return
			}

			var err error
			if x, err = ob.Segments.ReadExecution(ctx, x.InstanceID, x.Previous, provider.Strong); err != nil {
				// an erased execution (R21) ended before all messages that can still arrive were sent
				if !errors.Is(err, provider.ErrNotFound) {
					yield(unsentExecution{}, err)
				}
				return
			}
		}
	}
}

// watermarkAt returns the watermark of an execution at a time. found is false if it had not started.
func watermarkAt(x *provider.Orchestration, at time.Time) (watermark provider.Position, found bool) {
	for _, s := range slices.Backward(x.Segments) {
		if len(s.Events) > 0 && !s.Events[0].Time.After(at) {
			return s.Watermark, true
		}
	}
	return provider.Position{}, false
}

// firstSince returns the index of the first segment that consumed the message at from, or the number of segments if
// there is none. The zero position is before all segments.
func firstSince(x *provider.Orchestration, from provider.Position) int {
	if from == (provider.Position{}) {
		return 0
	}
	for i, s := range x.Segments {
		if s.Watermark.Covers(from) {
			return i
		}
	}
	return len(x.Segments)
}
