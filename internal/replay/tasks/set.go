package tasks

import (
	"encoding/json"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
)

// Events holds the external events of an execution, and the tasks that wait for them.
type Events interface {
	// Holds reports whether the task has settled with an event that the code has not observed.
	Holds(t *Task) bool
	// Observe consumes the event of the task.
	Observe(t *Task)
	// Cancel cancels waits for events, except those whose events the code has observed.
	Cancel(waits []*Task, f *history.Failure) error
	// Waits returns the tasks that the cancellation of the instance ends.
	Waits() []*Task
}

// Options describe an execution.
type Options struct {
	*history.ExecutionRef

	// ExactRetries records retry policies without their jitter.
	ExactRetries bool
}

// RetryPolicy returns a retry policy in the form in which the history records it. Attempts follow the recorded policy,
// even if the code has changed.
func (o *Options) RetryPolicy(p *history.RetryPolicy) *history.RetryPolicy {
	if p == nil || !o.ExactRetries {
		return p
	}
	exact := *p
	exact.Jitter = 0
	return &exact
}

// Set holds the open tasks of an execution. A task is open if the code has requested it and its outcome is not in the
// history.
type Set struct {
	// Arrivals are the outcomes that the code has not observed.
	Arrivals Arrivals

	options   Options
	scheduler *Scheduler
	scopes    *Scopes
	children  children
	payloads  *loading.Loader
	events    Events
	open      map[int64]*Task // without an outcome in the history, even if cancelled; by the last scheduling event
	untaken   int             // bytes of results that the code has not taken
	ends      endWaits
}

// Init prepares a new Set and the Scopes of the same execution.
func (s *Set) Init(opts *Options, scheduler *Scheduler, scopes *Scopes, j *journal.Journal, loader *loading.Loader) {
	s.options = *opts
	s.scheduler, s.scopes, s.payloads = scheduler, scopes, loader
	s.children = children{set: s, journal: j}
	s.events = noEvents{}
	s.open = map[int64]*Task{}
	s.ends.set = s
	scopes.set, scopes.journal = s, j
}

// Options returns the options of the execution.
func (s *Set) Options() *Options { return &s.options }

// SetEvents sets the external events of the execution. Before SetEvents, no task of the Set may wait for an external
// event.
func (s *Set) SetEvents(e Events) { s.events = e }

// noEvents are the external events of an execution that has not used any.
type noEvents struct{}

func (noEvents) Holds(*Task) bool                       { return false }
func (noEvents) Observe(*Task)                          {}
func (noEvents) Cancel([]*Task, *history.Failure) error { return nil }
func (noEvents) Waits() []*Task                         { return nil }

// Schedule returns the task that an event schedules in a scope.
func (s *Set) Schedule(in *Scope, ev *history.Event) *Task {
	t := &Task{set: s, id: ev.ID, kind: ev.Kind, name: ev.DisplayName(), fireAt: ev.FireAt}
	switch ev.Kind { //nolint:exhaustive // other tasks have no other instance
	case history.SubOrchestrationScheduled:
		t.attempt = 1
		t.child = newChild(ev)
	case history.ExternalEventSent, history.UpdateSent:
		t.receiver = ev.InstanceID
	}
	in.adopt(t)
	if ev.WaitsForCancellation() { // as recorded, because the code may have changed
		s.ends.add(t)
	}
	s.open[t.id] = t
	return t
}

// ScheduleDetached adds a task for which no code waits. Its only possible outcome is that its output could not be sent
// (R9).
func (s *Set) ScheduleDetached(in *Scope, ev *history.Event) { s.Schedule(in, ev).done = true }

// Subscribe returns a task that waits for an external event. The caller passes it to the Events.
func (s *Set) Subscribe(in *Scope, ev *history.Event) *Task {
	t := &Task{set: s, id: ev.ID, kind: ev.Kind, name: ev.Name}
	in.adopt(t)
	return t
}

// NewSignal returns a task without a decision. Signal settles it.
func (s *Set) NewSignal() *Task { return &Task{set: s} }

// Signal settles a task of NewSignal, unless it is settled.
func (s *Set) Signal(t *Task) {
	if !t.done {
		s.settle(t, nil, nil)
	}
}

// NewSettled returns a settled task without a decision. f is nil for success.
func (s *Set) NewSettled(name string, f *history.Failure) *Task {
	return &Task{set: s, name: name, done: true, failure: f}
}

// NewCancelled returns a task of a cancelled scope, which was never scheduled.
func (s *Set) NewCancelled(in *Scope, name string) *Task {
	return &Task{set: s, name: name, scope: in, done: true, cancelled: true, failure: &in.cancelled.Failure}
}

// Find returns the open task of an input. ok is false if the input does not apply.
func (s *Set) Find(ev *history.Event) (t *Task, ok bool) {
	t = s.open[ev.SourceEventID]
	switch ev.Kind {
	case history.ActivityCancelRequested:
		return t, t.isOpenActivity() && ev.IsInput()
	case history.ActivityRetryScheduled:
		return t, t.isOpenActivity() && ev.Attempt > int(t.attempt)
	default:
		return t, t != nil && t.isOutcome(ev.Kind)
	}
}

// Activity reports the state of an activity. open is true if it has neither settled nor been cancelled. cancelled is
// true if it was cancelled and has not settled, and awaited is true if the cancellation waits for its end.
func (s *Set) Activity(id int64) (open, cancelled, awaited bool) {
	t := s.open[id]
	if t == nil || t.kind != history.ActivityScheduled || t.done || s.Arrivals.Has(id) {
		return false, false, false
	}
	return !t.cancelled, t.cancelled, t.waits != waitsForNone
}

// forget removes a task, so that later outcomes of its event are dropped.
func (s *Set) forget(t *Task) { delete(s.open, t.id) }

// reschedule makes a task represent another event.
func (s *Set) reschedule(t *Task, ev *history.Event) {
	t.id = ev.ID
	t.kind = ev.Kind
	t.fireAt = ev.FireAt
	s.open[t.id] = t
}

// SettleEvent settles a task with the data of an external event, which may be encoded.
func (s *Set) SettleEvent(t *Task, data json.RawMessage, encoded bool) {
	t.encoded = encoded
	s.settle(t, data, nil)
}

// CancelEvent settles a task that waits for an external event as cancelled.
func (s *Set) CancelEvent(t *Task, f *history.Failure) {
	t.cancelled = true
	s.settle(t, nil, f)
}

// settle settles a task with a result or a failure, and wakes the coroutines that wait for it.
func (s *Set) settle(t *Task, result json.RawMessage, f *history.Failure) {
	s.untaken += len(result) - len(t.result)
	t.done = true
	t.result = result
	t.failure = f

	for _, c := range t.waiters {
		if c.Wait.settled != nil {
			*c.Wait.settled = append(*c.Wait.settled, t)
		}
		s.scheduler.Wake(c)
	}
	t.waiters = nil
	t.one[0] = nil

	if t.child != nil {
		t.child.input = nil
	}
	if t.waits != waitsForNone {
		s.ends.count(t)
	}
}

// takeResult returns and releases the result of a task.
func (s *Set) takeResult(t *Task) json.RawMessage {
	r := t.result
	t.result = nil
	s.untaken -= len(r)
	return r
}

// cancel settles a task as cancelled. If the cancellation waits for the end of the task, the task settles later.
func (s *Set) cancel(t *Task, f *history.Failure) {
	t.cancelled = true
	if t.waits == waitsForNone {
		s.settle(t, nil, f)
		return
	}

	t.failure = f
	if t.scopeCancellation() != nil {
		t.waits = waitsWithScope
	}
	if t.kind == history.TimerCreated { // a child between two attempts
		s.settleEnded(t, history.OutcomeEnded)
	} else if t.scope.isShielded() {
		s.ends.addIn(shield, t)
	}
}

// settleEnded settles a cancelled task that has ended.
func (s *Set) settleEnded(t *Task, outcome string) {
	f := *t.failure
	f.CancelOutcome = outcome
	s.settle(t, nil, &f)
}

// scheduled returns the open tasks that are not cancelled. If shielded is false, it omits tasks that the cancellation
// of the instance does not reach.
func (s *Set) scheduled(shielded bool) []*Task {
	var all []*Task
	for _, t := range s.open {
		if !t.done && !t.cancelled && (shielded || !t.scope.isShielded()) {
			all = append(all, t)
		}
	}
	return all
}

// Owns reports whether a task belongs to this execution.
func (s *Set) Owns(t *Task) bool { return t.set == s }

// InstanceIDOf returns the ID of the instance to which a task belongs.
func InstanceIDOf(t *Task) string { return t.set.options.InstanceID }

// taskBytes is the approximate memory of an open task, measured with 10,000 suspended instances.
const taskBytes = 256

// Bytes returns the approximate memory of the open tasks and of the results that the code has not taken.
func (s *Set) Bytes() int { return len(s.open)*taskBytes + s.untaken }
