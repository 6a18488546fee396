package observe

import (
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// endMetrics are the metrics of the ends of orchestrations.
var endMetrics = map[history.Kind]string{
	history.OrchestrationCompleted:  intake.MetricOrchestrationsCompleted,
	history.OrchestrationFailed:     intake.MetricOrchestrationsFailed,
	history.OrchestrationCancelled:  intake.MetricOrchestrationsCancelled,
	history.OrchestrationTerminated: intake.MetricOrchestrationsTerminated,
}

// dueSince returns the time at which an execution was started, or the end of its start delay.
func dueSince(start *history.Event) time.Time {
	if at := start.StartAt; at != nil && at.After(start.Time) {
		return *at
	}
	return start.Time
}

// measure counts a committed turn. Pauses, inputs that are parked during a pause, and resumes are not turns.
func (t *Turns) measure(x *execution.Execution, committed *provider.Turn) {
	m := t.observer.meter
	if m == nil || x.Paused() || x.State().NeedsTurn() {
		return
	}
	name, now := x.State().Name, committed.Events[0].Time
	m.Since(intake.MetricTurn, name, t.began)
	if committed.Head.Segment == 0 && x.Start().Number == 1 {
		m.Between(intake.MetricOrchestrationScheduleToStart, name, dueSince(x.Start()), now)
	}
	for i := range committed.Events {
		e := &committed.Events[i]
		if e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed {
			m.Between(intake.MetricActivityEndToEnd, name, x.Index.TimeOf(e.SourceEventID), e.Time)
		}
	}
	ended, ok := endMetrics[x.State().Last]
	if !ok {
		return
	}
	end := committed.Events[len(committed.Events)-1].Time // of two turns in a commit, the second one ends
	m.Count(ended, name, 1)
	m.Between(intake.MetricOrchestrationExecution, name, x.Index.FirstTurnAt(), end)
	m.Between(intake.MetricOrchestrationEndToEnd, name, dueSince(x.Start()), end)
}
