package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// Task is a unit that an orchestration can wait for: an activity, a timer, a child, an external event, an update, a
// coroutine. Like a Context, it must be used only on coroutines of the orchestration.
type Task struct {
	x         *execution
	id        int64
	kind      history.Kind // of the decision that made it; empty for a coroutine, and for what was settled from the start
	name      string
	fireAt    *time.Time // of a timer
	child     *child     // of a sub-orchestration
	receiver  string     // the instance that an event or an update was sent to
	updateID  string     // of an update that was sent
	attempt   int32      // of an activity: the last that is known, 0 while that is the first; of a child, from 1
	done      bool
	cancelled bool // by the code, with its scope, or by a client: outcomes are dropped
	expires   bool // a timer that cancels its scope
	sealed    bool // result is a sealed payload
	waits     waiting
	result    json.RawMessage
	failure   *history.Failure
	waiters   []*coroutine
	scope     *scope        // nil for a coroutine, and for what was settled from the start
	one       [1]*coroutine // the backing array of waiters while that is one, as it mostly is
}

// UpdateID returns the ID of an update that was sent to another instance.
func UpdateID(t *Task) string { return t.updateID }

// ReceiverID returns the instance that an external event or an update was sent to. It is empty for other tasks.
func (t *Task) ReceiverID() string { return t.receiver }

// ID returns the ID of the event that scheduled the task, or 0 if no event did.
func (t *Task) ID() int64 { return t.id }

// Kind returns the kind of the decision that created the task: ActivityScheduled, TimerCreated,
// SubOrchestrationScheduled, ExternalEventSubscribed, ExternalEventSent or UpdateSent. It is empty if there was none.
func (t *Task) Kind() history.Kind { return t.kind }

// Name returns the name of the activity, the external event, the update or the child orchestration, or the name of a
// timer, which may be empty.
func (t *Task) Name() string { return t.name }

// InstanceID returns the instance ID of the child's last attempt.
func (t *Task) InstanceID() string {
	if t.child == nil {
		return ""
	}
	return t.child.instanceID
}

// FireAt returns the due time of a timer.
func (t *Task) FireAt() time.Time {
	if t.fireAt == nil {
		return time.Time{}
	}
	return *t.fireAt
}

// IsDone reports whether the task has settled: with a result, with a failure, or by cancellation. If the cancellation
// waits for the end of the task, the task settles after its end.
func (t *Task) IsDone() bool { return t.done }

// IsCancelled reports whether the task was cancelled, by the code or otherwise. Failure returns the reason after the
// task is done.
func (t *Task) IsCancelled() bool { return t.cancelled }

// Cancellation returns the cancellation of the task's scope if the task is done and was cancelled with the scope, and
// otherwise nil.
func (t *Task) Cancellation() *Cancellation {
	if !t.done {
		return nil
	}
	return t.ofScope()
}

// outstanding reports whether there is something to cancel: an external event can be, until the code has observed it.
func (t *Task) outstanding() bool {
	return !t.done || t.kind == history.ExternalEventSubscribed && t.x.tasks.mail.holds(t)
}

// Failure returns the failure of the task. It is nil if the task succeeded or is not done.
func (t *Task) Failure() *history.Failure {
	if !t.done {
		return nil // why it was cancelled may be known, but it has not ended
	}
	return t.failure
}

// OpenedFailure returns the failure of a task with decoded details. If decoding fails, OpenedFailure fails the turn and
// does not return.
func OpenedFailure(t *Task) *history.Failure {
	f, err := t.x.payloads.DecodeFailure(t.Failure(), t.name, t.id)
	if err != nil {
		t.x.scheduler.fail(err)
	}
	return f
}

// TakeResult returns the result and releases it, so that a warm instance does not hold results that its code has
// decoded. It decodes an encoded result. If decoding fails, TakeResult fails the turn and does not return.
func (t *Task) TakeResult() json.RawMessage {
	r := t.x.tasks.takeResult(t)
	if !t.sealed {
		return r
	}
	p := history.Payload(r)
	doc, err := t.x.payloads.Decode(history.EventPayload{Payload: &p, Kind: resultKind(t), Name: t.name}, t.id, t.x.payloads.TakeResult(t.id)...)
	if err != nil {
		t.x.scheduler.fail(err)
	}
	return doc
}

// StoredResult implements payloads.Result.
func (t *Task) StoredResult() (of history.EventPayload, ok bool) {
	if t.result == nil {
		return of, false
	}
	p := history.Payload(t.result)
	return history.EventPayload{Payload: &p, Kind: resultKind(t), Name: t.name}, true
}

// resultKind is what the task's result is.
func resultKind(t *Task) history.PayloadKind {
	switch t.kind {
	case history.ExternalEventSubscribed:
		return history.PayloadEventData
	case history.SubOrchestrationScheduled, history.TimerCreated:
		return history.PayloadOrchestrationOutput
	case history.UpdateSent:
		return history.PayloadUpdateResult
	default:
		return history.PayloadActivityResult
	}
}

// setSealed notes whether the result that the task settles with is sealed.
func (t *Task) setSealed(sealed bool) { t.sealed = sealed }

// Cancel is like Context.Cancel for this task.
func (t *Task) Cancel(reason, message string) { t.x.scopes.cancelByCode(reason, message, t) }

// String describes the task for error messages.
func (t *Task) String() string {
	if t.kind == "" {
		return "a coroutine"
	}
	d := journal.Decision{Kind: t.kind, Name: t.name}
	return fmt.Sprintf("%s #%d", d.String(), t.id)
}

// describeTasks describes the first tasks of a list.
func describeTasks(tasks []*Task) string {
	const most = 3
	var names []string
	for _, t := range tasks[:min(len(tasks), most)] {
		names = append(names, t.String())
	}

	if n := len(tasks) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
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

// setAttempt notes which attempt the task is at.
func (t *Task) setAttempt(attempt int32) { t.attempt = attempt }

// markDone ends a task that no code waits for.
func (t *Task) markDone() { t.done = true }

// observe consumes the external event that the task has settled with: the code has seen it.
func (t *Task) observe() {
	if t.kind == history.ExternalEventSubscribed {
		t.x.tasks.mail.observe(t)
	}
}

// addWaiter has a coroutine woken when the task settles.
func (t *Task) addWaiter(c *coroutine) {
	if t.waiters == nil {
		t.waiters = t.one[:0]
	}
	t.waiters = append(t.waiters, c)
}

// removeWaiter forgets a coroutine that goes on although the task is not done. Else a task that is raced again and again would gather a
// waiter each time.
func (t *Task) removeWaiter(c *coroutine) {
	if !t.done {
		t.waiters = slices.DeleteFunc(t.waiters, func(w *coroutine) bool { return w == c })
	}
}
