package replay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// Task is something an orchestration asked for and may wait for: an activity, a timer, a coroutine. Like everything of a
// Context it must be used on the orchestration's own coroutines.
type Task struct {
	x         *execution
	id        int64
	kind      history.Kind // of the decision that made it; empty for a coroutine, and for what was settled from the start
	name      string
	fireAt    *time.Time // of a timer
	child     *child     // of a sub-orchestration
	attempt   int32      // of an activity: the last that is known of, 0 while that is the first; of a child, from 1
	done      bool
	cancelled bool // by the code, or with its scope: an outcome is of no use to it
	expires   bool // a timer that ends its scope
	waits     waiting
	result    json.RawMessage
	failure   *history.Failure
	waiters   []*coroutine
	scope     *scope        // nil of a coroutine, and of what was settled from the start
	one       [1]*coroutine // what waiters is made of while it is one, as it mostly is
}

// ID is the id of the event that scheduled the task; 0 when it never was.
func (t *Task) ID() int64 { return t.id }

// Kind is that of the decision that made the task: ActivityScheduled, TimerCreated, SubOrchestrationScheduled or
// ExternalEventSubscribed. It is empty when there was none.
func (t *Task) Kind() history.Kind { return t.kind }

// Name is the name of the activity, the external event or the child orchestration.
func (t *Task) Name() string { return t.name }

// InstanceID is the child's instance id: that of its last attempt.
func (t *Task) InstanceID() string {
	if t.child == nil {
		return ""
	}
	return t.child.instanceID
}

// FireAt is when a timer is due.
func (t *Task) FireAt() time.Time {
	if t.fireAt == nil {
		return time.Time{}
	}
	return *t.fireAt
}

// IsDone reports whether the task has settled: with a result, a failure, or because it was cancelled and, where that is waited for, has ended.
func (t *Task) IsDone() bool { return t.done }

// IsCancelled reports whether the task was given up, by the code or otherwise; then Failure says why, once it is done.
func (t *Task) IsCancelled() bool { return t.cancelled }

// Cancellation is that of the task's scope, if the task was given up with it; else nil.
func (t *Task) Cancellation() *Cancellation {
	if !t.done {
		return nil
	}
	return t.ofScope()
}

// outstanding reports whether there is something to give up: an external event is until the code has been told of it.
func (t *Task) outstanding() bool {
	return !t.done || t.kind == history.ExternalEventSubscribed && t.x.mail.held[t] != nil
}

// Failure is what the task failed with; nil when it did not, or is not done.
func (t *Task) Failure() *history.Failure {
	if !t.done {
		return nil // of one that is cancelled and has not ended it is only known why
	}
	return t.failure
}

// TakeResult hands out the result and forgets it: a warm instance does not keep what its code has decoded.
func (t *Task) TakeResult() json.RawMessage {
	r := t.result
	t.result = nil
	if t.x != nil {
		t.x.untaken -= len(r)
	}
	return r
}

// Cancel is Context.Cancel of this one task.
func (t *Task) Cancel(reason, message string) { t.x.cancel(reason, message, t) }

// String names the task for diagnoses.
func (t *Task) String() string {
	if t.kind == "" {
		return "a coroutine"
	}
	d := decision{kind: t.kind, name: t.name}
	return fmt.Sprintf("%s #%d", d.String(), t.id)
}

// settledBy reports whether an input of that kind is an outcome of the task.
func (t *Task) settledBy(k history.Kind) bool {
	switch k {
	case history.OutputFailed:
		return true
	case history.ActivityCompleted, history.ActivityFailed:
		return t.kind == history.ActivityScheduled
	case history.TimerFired:
		return t.kind == history.TimerCreated
	case history.SubOrchestrationCompleted, history.SubOrchestrationFailed:
		return t.kind == history.SubOrchestrationScheduled
	case history.SubOrchestrationCancelFailed:
		return t.kind == history.SubOrchestrationScheduled && t.cancelled
	default:
		return false
	}
}

// record takes an outcome into account: it settles the task, unless the orchestration cancelled it before, and is its last; or a
// child is tried again. Of what was cancelled, and is waited for, it is the end, whatever came of it.
func (x *execution) record(t *Task, ev *history.Event) error {
	result, ok := ev.Result.Document()
	if !ok {
		return fmt.Errorf("replay: instance %q: the result in event #%d was not fetched from where it lies", x.options.InstanceID, ev.ID)
	}
	delete(x.tasks, t.id)
	f := failure(ev) // once: a larger frame would have the new stack of every turn grow
	switch {
	case t.done:
		return nil
	case t.cancelled:
		x.settleEnded(t, history.EndOf(ev))
		return nil
	case t.expires:
		t.done = true
		return x.expire(t.scope, f)
	case ev.Kind == history.TimerFired && t.child != nil:
		return x.restart(t)
	case ev.Kind == history.SubOrchestrationFailed:
		if again, err := x.retry(t, f); again || err != nil {
			return err
		}
	}
	x.settle(t, result, f)
	return nil
}

// failure is what an outcome failed with; nil when it did not.
func failure(ev *history.Event) *history.Failure {
	switch ev.Kind {
	case history.ActivityFailed, history.OutputFailed, history.SubOrchestrationFailed:
		if ev.Error == nil {
			return &history.Failure{Type: history.TypeError, Message: "no error was told"}
		}
		return ev.Error
	default:
		return nil
	}
}

func (x *execution) settle(t *Task, result json.RawMessage, f *history.Failure) {
	t.done, t.result, t.failure = true, result, f
	x.untaken += len(result)
	for _, c := range t.waiters {
		x.wake(c)
	}
	t.waiters = nil
	t.one[0] = nil
	if t.child != nil {
		t.child.input = nil
	}
	if t.waits != waitsForNone {
		x.tellEnd(t)
	}
}

func (t *Task) addWaiter(c *coroutine) {
	if t.waiters == nil {
		t.waiters = t.one[:0]
	}
	t.waiters = append(t.waiters, c)
}
