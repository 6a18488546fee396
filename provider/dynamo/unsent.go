package dynamo

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// stretch is an execution, of which what the segments from first on have caused may not have been sent.
type stretch struct {
	*provider.Orchestration

	first int
}

// mostStretches bounds how many executions are looked through for what was not sent. A message that is picked up as the watch does has that
// of some minutes behind it.
const mostStretches = 100

// maybeUnsent reads the executions of which something may not have been sent, the newest first: o, and those that it continues (R4). They may be large:
// one at a time is in memory beside o.
func (p *Provider) maybeUnsent(ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom) iter.Seq2[stretch, error] {
	return func(yield func(stretch, error) bool) {
		from, found := since.Position, since.HeadAt.IsZero()
		x := o
		for n := 1; ; n++ {
			if !found {
				from, found = headAt(x, since.HeadAt)
			}
			if !yield(stretch{x, firstSince(x, from)}, nil) || x.Previous == "" || found && !x.Segments[0].Watermark.Covers(from) {
				return
			}
			if n == mostStretches {
				p.log.ErrorContext(ctx, "redispatch limit reached, outputs of older executions may be missing",
					"event", logevent.RedispatchIncomplete, "instance", x.InstanceID, "execution", o.Head.ExecutionID,
					"executions", n, "since", since.HeadAt)
				return
			}

			var err error
			if x, err = p.readExecution(ctx, x.InstanceID, x.Previous, provider.Strong); err != nil {
				if !errors.Is(err, provider.ErrNotFound) { // else erased (R21): it ended before any message that can still arrive was sent
					yield(stretch{}, err)
				}
				return
			}
		}
	}
}

// headAt returns the watermark that an execution had at a time; found is false where it had not begun.
func headAt(x *provider.Orchestration, at time.Time) (watermark provider.Position, found bool) {
	for _, s := range slices.Backward(x.Segments) {
		if len(s.Events) > 0 && !s.Events[0].Time.After(at) {
			return s.Watermark, true
		}
	}
	return provider.Position{}, false
}

// firstSince returns the index of the first segment that has consumed the message at from; the number of segments where
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
