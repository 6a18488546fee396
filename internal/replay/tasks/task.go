// Package tasks implements the tasks for which an orchestration can wait, and the scopes that cancel them. Only this
// package settles a task, so that the coroutines that wait for the task are woken.
package tasks

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// Task is a unit for which an orchestration can wait: an activity, a timer, a child, an external event, an update or a
// coroutine. Like a Context, it must be used only on coroutines of the orchestration.
type Task struct {
	set       *Set
	id        int64
	kind      history.Kind // of the decision that created the task; empty if there was none
	name      string
	fireAt    *time.Time // of a timer
	child     *child     // of a sub-orchestration
	receiver  string     // the instance to which an event or an update was sent
	updateID  string     // of an update that was sent
	attempt   int32      // of an activity: the last known one, 0 for the first; of a child, from 1
	done      bool
	cancelled bool // by the code, with its scope, or by a client; outcomes are dropped
	expires   bool // a timer that cancels its scope
	encoded   bool // result is an encoded payload
	waits     endWait
	result    json.RawMessage
	failure   *history.Failure
	waiters   []*Coroutine
	scope     *Scope        // nil for a task without a decision
	one       [1]*Coroutine // the backing array of waiters for the usual case of one waiter
}

// UpdateID returns the ID of an update that was sent to another instance.
func (t *Task) UpdateID() string { return t.updateID }

// SetUpdateID sets the ID of an update that was sent to another instance.
func (t *Task) SetUpdateID(id string) { t.updateID = id }

// ReceiverID returns the instance to which an external event or an update was sent. It is empty for other tasks.
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
	return t.scopeCancellation()
}

// Failure returns the failure of the task. It is nil if the task succeeded or is not done.
func (t *Task) Failure() *history.Failure {
	if !t.done {
		return nil // a cancelled task may have a reason before it ends
	}
	return t.failure
}

// DecodedFailure returns the failure of a task with decoded details. If decoding fails, DecodedFailure fails the turn
// and does not return.
func (t *Task) DecodedFailure() *history.Failure {
	f, err := t.set.payloads.DecodeFailure(t.Failure(), t.name, t.id)
	if err != nil {
		t.set.scheduler.Fail(err)
	}
	return f
}

// TakeResult returns the result and releases it, so that a warm instance does not hold results that its code has
// decoded. It decodes an encoded result. If decoding fails, TakeResult fails the turn and does not return.
func (t *Task) TakeResult() json.RawMessage {
	r := t.set.takeResult(t)
	if !t.encoded {
		return r
	}
	p := history.Payload(r)
	of := history.EventPayload{Payload: &p, Kind: resultKindOf(t.kind), Name: t.name}
	doc, err := t.set.payloads.Decode(of, t.id, t.set.payloads.TakeResult(t.id)...)
	if err != nil {
		t.set.scheduler.Fail(err)
	}
	return doc
}

// StoredResult implements payloads.Result.
func (t *Task) StoredResult() (of history.EventPayload, ok bool) {
	if t.result == nil {
		return of, false
	}
	p := history.Payload(t.result)
	return history.EventPayload{Payload: &p, Kind: resultKindOf(t.kind), Name: t.name}, true
}

// Cancel is like Scopes.Cancel for this task.
func (t *Task) Cancel(reason, message string) { t.set.scopes.Cancel(reason, message, t) }

// String describes the task for error messages.
func (t *Task) String() string {
	if t.kind == "" {
		return "a coroutine"
	}
	d := journal.Decision{Kind: t.kind, Name: t.name}
	return fmt.Sprintf("%s #%d", d.String(), t.id)
}

// Describe describes the first tasks of a list.
func Describe(tasks []*Task) string {
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

// IsOutstanding reports whether the task can be cancelled. A wait for an external event can be cancelled until the code
// has observed the event.
func (t *Task) IsOutstanding() bool {
	return !t.done || t.kind == history.ExternalEventSubscribed && t.set.events.Holds(t)
}

// IsShielded reports whether the cancellation of the instance does not reach the task.
func (t *Task) IsShielded() bool { return t.scope.isShielded() }

// SetExpires makes a timer cancel its scope when it fires.
func (t *Task) SetExpires() { t.expires = true }

// Observe records that the code has observed the outcome of the task. It consumes an external event.
func (t *Task) Observe() {
	if t.kind == history.ExternalEventSubscribed {
		t.set.events.Observe(t)
	}
}

// resultKindOf returns the payload kind of the result of a task.
func resultKindOf(kind history.Kind) history.PayloadKind {
	switch kind {
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
