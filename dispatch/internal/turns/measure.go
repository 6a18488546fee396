package turns

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// measure counts what a turn that is committed, and applied to the view, has brought about.
func measure(s *session, t *provider.Turn) {
	m, x := s.o.meter, s.x
	if m == nil || isPaused(x) || x.state.NeedsFirstTurn() { // a pause, what is parked meanwhile and a resume are no turns
		return
	}
	name, now := x.state.Name, t.Events[0].Time
	m.Since(intake.MetricTurn, name, s.turnBegan)
	if t.Head.Segment == 0 && x.start.Number == 1 {
		m.Between(intake.MetricOrchestrationScheduleToStart, name, x.dueAt(), now)
	}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed {
			m.Between(intake.MetricActivityEndToEnd, name, x.timeOf(e.SourceEventID), e.Time)
		}
	}
	ended, over := map[history.Kind]string{
		history.OrchestrationCompleted: intake.MetricOrchestrationsCompleted, history.OrchestrationFailed: intake.MetricOrchestrationsFailed,
		history.OrchestrationCancelled: intake.MetricOrchestrationsCancelled, history.OrchestrationTerminated: intake.MetricOrchestrationsTerminated,
	}[x.state.Last]
	if !over {
		return
	}
	end := t.Events[len(t.Events)-1].Time // of two turns in a commit it is the second that ends
	m.Count(ended, name, 1)
	m.Between(intake.MetricOrchestrationExecution, name, time.UnixMilli(x.times[1]), end)
	m.Between(intake.MetricOrchestrationEndToEnd, name, x.dueAt(), end)
}

// measure counts how an attempt of a step has ended, as a worker does. What goes on in its queue has not.
func (st *step) measure(ctx context.Context, began time.Time, end stepEnd) {
	m, name := st.view.o.stepMeter, st.event.Name
	if m == nil {
		return
	}
	m.Since(intake.MetricActivityExecution, name, began)
	stopped, _ := errors.AsType[*perdure.CancelledError](context.Cause(ctx))
	switch {
	case stopped == errStopped || stopped == errDropped:
	case stopped != nil:
		m.Count(intake.MetricActivitiesCancelled, name, 1)
	case end.outcome == nil:
		m.Count(intake.MetricActivitiesRetried, name, 1)
	case end.outcome.err != nil:
		m.Count(intake.MetricActivitiesFailed, name, 1)
	}
}

// dueAt is when the execution was started, or is to begin where that is later.
func (x *execution) dueAt() time.Time {
	if at := x.start.StartAt; at != nil && at.After(x.start.Time) {
		return *at
	}
	return x.start.Time
}

// timeOf is the time of an event of this execution.
func (x *execution) timeOf(eventID int64) time.Time {
	at := x.segmentOf(eventID)
	if i := sort.Search(len(x.seconds), func(i int) bool { return x.seconds[i].id > eventID }); i > 0 && x.seconds[i-1].id > x.firsts[at] {
		return time.UnixMilli(x.seconds[i-1].at)
	}
	return time.UnixMilli(x.times[at])
}
