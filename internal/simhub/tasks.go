package simhub

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// TaskMonitor records the tasks that turns schedule and end, and compares them with the histories of a hub at rest.
type TaskMonitor struct {
	// All requires a report for every task. Set it if no process crashes.
	All bool

	mu         sync.Mutex
	executions map[string]*taskReports
	wrong      []error
}

// taskReports contains the reports of an execution, by task ID.
type taskReports struct{ begun, ended map[int64]perdure.TaskInfo }

// Interceptor returns the interceptor that records the tasks.
func (w *TaskMonitor) Interceptor() perdure.Interceptor {
	return perdure.Interceptor{OnTasks: w.record}
}

func (w *TaskMonitor) record(_ context.Context, t perdure.TurnTasks) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.executions[t.ExecutionID]
	if x == nil {
		if w.executions == nil {
			w.executions = map[string]*taskReports{}
		}
		x = &taskReports{map[int64]perdure.TaskInfo{}, map[int64]perdure.TaskInfo{}}
		w.executions[t.ExecutionID] = x
	}
	for _, task := range t.Scheduled {
		w.once(t, x.begun, task)
		if task.ScheduledInTurn != t.Sequence || task.Outcome != "" || !task.EndedAt.IsZero() {
			w.wrongf("turn %d of %s reports an invalid scheduled task %+v", t.Sequence, t.ExecutionID, task)
		}
	}
	for _, task := range t.Ended {
		w.once(t, x.ended, task)
		if begun, is := x.begun[task.ID]; is && begun.ScheduledInTurn != task.ScheduledInTurn ||
			task.ScheduledInTurn > t.Sequence || task.Outcome == "" || task.EndedAt.Before(task.ScheduledAt) {
			w.wrongf("turn %d of %s reports an invalid ended task %+v", t.Sequence, t.ExecutionID, task)
		}
	}
}

// once records a task, and an error if it was reported before.
func (w *TaskMonitor) once(t perdure.TurnTasks, in map[int64]perdure.TaskInfo, task perdure.TaskInfo) {
	if before, is := in[task.ID]; is {
		w.wrongf("turn %d of %s reports %+v, which was already reported as %+v", t.Sequence, t.ExecutionID, task,
			before)
	}
	in[task.ID] = task
}

func (w *TaskMonitor) wrongf(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Errorf(format, args...))
}

// check compares the reports of an execution with its history. A nil witness reports nothing.
func (w *TaskMonitor) check(executionID string, events []history.Event) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.wrong
	x := w.executions[executionID]
	if x == nil {
		x = &taskReports{}
	}
	scheduling := schedulingEvents(events)
	for _, e := range scheduling {
		errs = append(errs, w.checkTask(x, e, endsWithoutCode(events)))
	}
	for id, ended := range x.ended {
		if scheduling[id] == nil && events[0].InstanceID == "" { // otherwise a restart has copied it
			errs = append(errs, fmt.Errorf("reported end of a task that is not in the history: %+v", ended))
		}
	}
	return errors.Join(append(errs, checkEnds(x, events)...)...)
}

// schedulingEvents returns the events that schedule tasks, without events that a restart copied.
func schedulingEvents(events []history.Event) map[int64]*history.Event {
	scheduling := map[int64]*history.Event{}
	for i := range events {
		if e := &events[i]; e.Kind == history.ExecutionRestarted {
			clear(scheduling)
		} else if _, is := taskKinds[e.Kind]; is {
			scheduling[e.ID] = e
		}
	}
	return scheduling
}

// checkTask compares the reports of a task with the event that scheduled it. If silent is true, the waits that ended
// with the execution were not reported.
func (w *TaskMonitor) checkTask(x *taskReports, e *history.Event, waitsUnreported bool) error {
	begun, was := x.begun[e.ID]
	ended, is := x.ended[e.ID]
	switch endless := e.Kind == history.DetachedOrchestrationScheduled ||
		waitsUnreported && e.Kind == history.ExternalEventSubscribed; {
	case was && !isOf(e, begun), is && !isOf(e, ended):
		return fmt.Errorf("%s was reported as scheduled with %+v, as ended with %+v", e.String(), begun, ended)
	case w.All && !was:
		return fmt.Errorf("the start of %s was not reported", e.String())
	case w.All && !is && !endless:
		return fmt.Errorf("the end of %s was not reported", e.String())
	default:
		return nil
	}
}

// taskKinds maps the kinds of events that schedule tasks to kinds of tasks.
var taskKinds = map[history.Kind]perdure.TaskKind{
	history.ActivityScheduled: perdure.TaskActivity, history.TimerCreated: perdure.TaskTimer,
	history.SubOrchestrationScheduled:      perdure.TaskSubOrchestration,
	history.DetachedOrchestrationScheduled: perdure.TaskDetachedOrchestration,
	history.ExternalEventSubscribed:        perdure.TaskExternalEvent,
	history.ExternalEventSent:              perdure.TaskSentEvent, history.UpdateSent: perdure.TaskSentUpdate,
	history.UpdateAccepted: perdure.TaskUpdate,
}

// isOf reports whether an event scheduled a task.
func isOf(e *history.Event, task perdure.TaskInfo) bool {
	due := task.Kind != perdure.TaskTimer || e.FireAt.Equal(task.DueAt)
	return task.ID == e.ID && task.Kind == taskKinds[e.Kind] && task.Name == e.DisplayName() &&
		task.InstanceID == e.InstanceID && task.ScheduledAt.Equal(e.Time) && due
}

// endsWithoutCode reports whether an execution may have ended without its code, which then reported no waits.
func endsWithoutCode(events []history.Event) bool { return events[len(events)-1].EndsWithoutCode() }

// checkEnds compares reported outcomes with the outcomes in the history. The last outcome of a task counts.
func checkEnds(x *taskReports, events []history.Event) (errs []error) {
	last, cancelled := map[int64]*history.Event{}, map[int64]bool{}
	for i := range events {
		e := &events[i]
		for _, id := range e.Settles() {
			last[id] = e
			cancelled[id] = cancelled[id] || requestsCancel(e.Kind) || e.Kind == history.TimerCancelled
		}
	}
	for id, ended := range x.ended {
		e := last[id]
		if e == nil {
			continue
		}
		end, failure := endOf(e, cancelled[id])
		if got := ended.Failure; ended.Outcome != end || (got == nil) != (failure == nil) ||
			got != nil && got.Message != failure.Message || end == perdure.TaskCancelled && ended.Reason == "" {
			errs = append(errs, fmt.Errorf("%s was reported as ended with %+v, want %s", e.String(), ended, end))
		}
	}
	return errs
}

// endOf returns the outcome of a task whose last event is e.
func endOf(e *history.Event, cancelled bool) (perdure.TaskOutcome, *history.Failure) {
	switch {
	case cancelled, e.Kind == history.UpdateCompleted && e.Reason != "",
		e.Error != nil && e.Error.Type == history.TypeCancelled:
		return perdure.TaskCancelled, nil
	case e.Error != nil:
		return perdure.TaskFailed, e.Error
	default:
		return perdure.TaskCompleted, nil
	}
}
