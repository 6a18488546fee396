package replay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// Task is something an orchestration asked for and may wait for: an activity or a timer. Like everything of a Context it
// must be used on the orchestration's own coroutine.
type Task struct {
	x         *execution
	id        int64
	kind      history.Kind // of the decision that made it; empty for one that was settled from the start
	name      string
	fireAt    time.Time
	done      bool
	cancelled bool // by the code, so that an outcome is of no use to it
	result    json.RawMessage
	failure   *history.Failure
	waiters   []*coroutine
	one       [1]*coroutine // what waiters is made of while it is one, as it mostly is
}

// ID is the id of the event that scheduled the task; 0 when it never was.
func (t *Task) ID() int64 { return t.id }

// Kind is that of the decision that made the task: ActivityScheduled or TimerCreated. It is empty when there was none.
func (t *Task) Kind() history.Kind { return t.kind }

// Name is the activity's name.
func (t *Task) Name() string { return t.name }

// FireAt is when a timer is due.
func (t *Task) FireAt() time.Time { return t.fireAt }

// IsDone reports whether the task has settled: with a result, a failure, or because it was cancelled.
func (t *Task) IsDone() bool { return t.done }

// IsCancelled reports whether the code gave the task up; then Failure says why.
func (t *Task) IsCancelled() bool { return t.cancelled }

// Failure is what the task failed with; nil when it did not.
func (t *Task) Failure() *history.Failure { return t.failure }

// TakeResult hands out the result and forgets it: a warm instance does not keep what its code has decoded.
func (t *Task) TakeResult() json.RawMessage {
	r := t.result
	t.result = nil
	return r
}

// Cancel is Context.Cancel of this one task.
func (t *Task) Cancel(reason, message string) { t.x.cancel(reason, message, t) }

// settledBy reports whether an input of that kind is an outcome of the task.
func (t *Task) settledBy(k history.Kind) bool {
	switch k {
	case history.OutputFailed:
		return true
	case history.ActivityCompleted, history.ActivityFailed:
		return t.kind == history.ActivityScheduled
	case history.TimerFired:
		return t.kind == history.TimerCreated
	default:
		return false
	}
}

// record takes an outcome into account: it settles the task, unless the orchestration cancelled it before, and is its last.
func (x *execution) record(t *Task, ev *history.Event) error {
	result, ok := ev.Result.Document()
	if !ok {
		return fmt.Errorf("replay: instance %q: the result in event #%d was not fetched from where it lies", x.options.InstanceID, ev.ID)
	}
	delete(x.tasks, t.id)
	if !t.done {
		x.settle(t, result, failure(ev))
	}
	return nil
}

// failure is what an outcome failed with; nil when it did not.
func failure(ev *history.Event) *history.Failure {
	switch ev.Kind {
	case history.ActivityFailed, history.OutputFailed:
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
	for _, c := range t.waiters {
		x.wake(c)
	}
	t.waiters = nil
	t.one[0] = nil
}

func (t *Task) addWaiter(c *coroutine) {
	if t.waiters == nil {
		t.waiters = t.one[:0]
	}
	t.waiters = append(t.waiters, c)
}
