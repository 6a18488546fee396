package outbox

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// SkippedOutputs holds the outputs of an execution that need not be sent.
type SkippedOutputs struct {
	Ids map[int64]bool
	// leftOut is the number of detached starts and events for other instances among them that may not have arrived.
	Dropped int
	// takenOver is the last event that the execution copied from another one. Its restart decided which outputs of
	// these events to send.
	lastCopied int64
	// old holds the starts of awaited children that are so old that the child could run twice.
	OldStarts []*history.Event
}

// Has reports whether the output of an event need not be sent.
func (u *SkippedOutputs) Has(id int64) bool { return u.Ids[id] }

// SkippedBefore finds the outputs that need not be sent: settled ones, and detached starts, events for other instances
// and responses to updates from before a time. It also finds starts of children from before MaxReconcileLookback.
func SkippedBefore(o *provider.Orchestration, since, now time.Time) SkippedOutputs {
	u := SkippedOutputs{Ids: o.State(history.TrackOpen | history.TrackSettled).SettledSet()}
	forgotten := now.Add(-provider.MaxReconcileLookback)
	u.skipCopied(o.RestartedEvents())
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			switch e := &o.Segments[i].Events[j]; {
			case e.ID <= u.lastCopied:
			case e.Kind == history.DetachedOrchestrationScheduled && e.Time.Before(since),
				(e.Kind == history.ExternalEventSent || e.Kind == history.UpdateSent) && e.Time.Before(since) &&
					!u.Ids[e.ID]:
				u.Ids[e.ID] = true
				u.Dropped++
			case (e.Kind == history.UpdateCompleted || e.Kind == history.UpdateRejected) && e.Time.Before(since):
				u.Ids[e.ID] = true // the execution does not wait for it any more
			case e.Kind == history.SubOrchestrationScheduled && e.Time.Before(forgotten) && !u.Ids[e.ID]:
				u.Ids[e.ID] = true
				u.OldStarts = append(u.OldStarts, e)
			}
		}
	}
	return u
}

// skipCopied omits outputs that another execution sent before its history was copied, and outputs that nothing waits
// for. The execution itself sends only outputs that it waits for, and responses to updates, whose IDs are valid here
// too.
func (u *SkippedOutputs) skipCopied(taken []history.Event) {
	for i := range taken {
		e := &taken[i]
		u.lastCopied = e.ID
		switch e.Kind {
		case history.DetachedOrchestrationScheduled,
			history.SubOrchestrationCancelRequested,
			history.ExternalEventRaised,
			history.InputsParked:
			u.Ids[e.ID] = true
		default:
		}
	}
}
