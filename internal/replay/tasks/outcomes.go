package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/retry"
)

// child describes the orchestration of a task. Between two attempts, the task represents a timer.
type child struct {
	name, version string
	first         string          // the instance ID of the first attempt
	instanceID    string          // the instance ID of the last attempt
	input         history.Payload // nil if there are no further attempts
	retry         *history.RetryPolicy
}

// newChild returns the child that an event schedules. It uses the recorded values, because the code may have changed.
func newChild(ev *history.Event) *child {
	c := &child{
		name: ev.Name, version: ev.Version, first: ev.InstanceID, instanceID: ev.InstanceID, retry: ev.Retry,
	}
	if ev.Retry != nil {
		c.input = ev.Input
	}
	return c
}

// Apply applies an input to the task that Find has returned for it.
func (s *Set) Apply(t *Task, ev *history.Event) error {
	switch ev.Kind {
	case history.ActivityCancelRequested:
		s.cancel(t, &NewCancellation(cmp.Or(ev.Reason, ReasonRequested), ev.Message).Failure)
		return nil
	case history.ActivityRetryScheduled:
		t.attempt = int32(ev.Attempt)
		return nil
	default:
		return s.applyOutcome(t, ev)
	}
}

// applyOutcome applies an outcome. The task settles, or a failed child is retried. If the task is cancelled, the
// outcome is its end, or is dropped if no cancellation waits for it.
func (s *Set) applyOutcome(t *Task, ev *history.Event) error {
	result, ok := ev.Result.Document()
	if !ok && ev.Result.IsEncoded() {
		result, ok = json.RawMessage(ev.Result), true
		t.encoded = true
		if ev.Result.StorageKey() != "" {
			s.payloads.AddResult(t.id, t)
		}
	}
	if !ok {
		return fmt.Errorf("replay: instance %q: the result in event #%d was not fetched", s.options.InstanceID, ev.ID)
	}

	s.forget(t)
	f := failureOf(ev) // only once, because a larger frame would make the new stack of every turn grow
	switch {
	case t.done:
		return nil
	case t.cancelled:
		s.settleEnded(t, cancelOutcomeOf(t, ev))
		return nil
	case t.expires:
		t.done = true
		return s.scopes.expire(t.scope, f)
	case ev.Kind == history.TimerFired && t.child != nil:
		return s.children.restart(t)
	case ev.Kind == history.SubOrchestrationFailed:
		if again, err := s.children.retry(t, f); again || err != nil {
			return err
		}
	}

	s.settle(t, result, f)
	return nil
}

// failureOf returns the failure of an outcome, or nil.
func failureOf(ev *history.Event) *history.Failure {
	switch ev.Kind {
	case history.UpdateAnswered:
		return ev.Error
	case history.ActivityFailed, history.OutputFailed, history.SubOrchestrationFailed, history.ExternalEventUndelivered:
		if ev.Error == nil {
			return &history.Failure{Type: history.TypeError, Message: "no error was reported"}
		}
		return ev.Error
	default:
		return nil
	}
}

// children schedules further attempts of children.
type children struct {
	set     *Set
	journal *journal.Journal
}

// cancelOutcomeOf returns the kind of end of a cancelled task, according to its outcome. If a child cannot be
// restarted, its previous attempt has ended.
func cancelOutcomeOf(t *Task, ev *history.Event) string {
	if ev.Kind == history.OutputFailed && t.child != nil && t.attempt > 1 {
		return history.OutcomeEnded
	}
	return history.CancelOutcomeOf(ev)
}

// isOpenActivity reports whether a task is an activity that has neither settled nor been cancelled. t may be nil.
func (t *Task) isOpenActivity() bool {
	return t != nil && t.kind == history.ActivityScheduled && !t.done && !t.cancelled
}

// isOutcome reports whether an input of a kind is an outcome of the task.
func (t *Task) isOutcome(k history.Kind) bool {
	switch k {
	case history.OutputFailed:
		return true
	case history.ActivityCompleted, history.ActivityFailed:
		return t.kind == history.ActivityScheduled
	case history.TimerFired:
		return t.kind == history.TimerCreated
	case history.ExternalEventDelivered, history.ExternalEventUndelivered:
		return t.kind == history.ExternalEventSent
	case history.UpdateAnswered:
		return t.kind == history.UpdateSent
	case history.SubOrchestrationCompleted, history.SubOrchestrationFailed:
		return t.kind == history.SubOrchestrationScheduled
	case history.SubOrchestrationCancelFailed:
		return t.kind == history.SubOrchestrationScheduled && t.cancelled
	default:
		return false
	}
}

// retry schedules another attempt of a failed child if its policy allows it, before the code observes the failure.
// The engine records a timer, then the next attempt.
func (c *children) retry(t *Task, f *history.Failure) (again bool, err error) {
	delay, again := retry.Next(t.child.retry, c.set.options.ExecutionID, t.id, int(t.attempt), f)
	if !again {
		return false, nil
	}

	ev, added, err := c.journal.Decide(&journal.Decision{Kind: history.TimerCreated})
	if err != nil {
		return false, err
	}
	if added {
		fireAt := c.journal.Draft.Now().Add(delay)
		ev.FireAt = &fireAt
	}

	c.set.reschedule(t, ev)
	return true, nil
}

// restart starts the next attempt of a child. The attempt is another instance, because the ID of the failed one is in
// use.
func (c *children) restart(t *Task) error {
	child := t.child
	attempt := t.attempt + 1
	id := fmt.Sprintf("%s~%d", child.first, attempt)

	ev, added, err := c.journal.Decide(&journal.Decision{
		Kind: history.SubOrchestrationScheduled, Name: child.name, InstanceID: id,
	})
	if err != nil {
		return err
	}
	if added {
		ev.Version = child.version
		ev.StartID = c.set.options.StartID(ev.ID)
		ev.Input = child.input
		ev.Attempt = int(attempt)
		ev.Retry = child.retry
		RecordWait(ev, t.waits != waitsForNone)
	}

	child.instanceID = id
	t.attempt = attempt
	c.set.reschedule(t, ev)
	return nil
}
