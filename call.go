package perdure

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// ActivityCallOption is an option of a call of an activity.
type ActivityCallOption interface{ applyToActivityCall(c *replay.ActivityCall) }

type startToClose time.Duration

func (d startToClose) applyToActivityCall(c *replay.ActivityCall) { c.StartToClose = time.Duration(d) }

// WithStartToClose limits how long an attempt of an activity may run once a worker has begun it; then its context ends and
// the attempt fails with a *TimeoutError. Durations are rounded up to whole milliseconds; zero and negative ones count as one, and
// those of more than ten years as ten.
func WithStartToClose(d time.Duration) ActivityCallOption {
	return startToClose(limit(d))
}

type heartbeatTimeout time.Duration

func (d heartbeatTimeout) applyToActivityCall(c *replay.ActivityCall) { c.Heartbeat = time.Duration(d) }

// WithHeartbeatTimeout limits how long an attempt of an activity may run without calling Heartbeat, from its beginning and from
// each call; then its context ends and the attempt fails with a *TimeoutError, whatever it does afterwards. It finds what hangs
// sooner than WithStartToClose can where an activity takes long by nature. Durations are those of WithStartToClose.
func WithHeartbeatTimeout(d time.Duration) ActivityCallOption {
	return heartbeatTimeout(limit(d))
}

type scheduleToClose time.Duration

func (d scheduleToClose) applyToActivityCall(c *replay.ActivityCall) {
	c.ScheduleToClose = time.Duration(d)
}

// WithScheduleToClose limits an activity as a whole, from the turn that schedules it: its wait for a worker, all attempts, and the
// waits between them. Then it fails with a *TimeoutError, a second later at most where no worker has it, and an attempt that is
// running is treated as WithStartToClose does. An attempt that would begin after that time is not made: the activity fails with the
// error of the one before. Durations are those of WithStartToClose.
func WithScheduleToClose(d time.Duration) ActivityCallOption {
	return scheduleToClose(limit(d))
}

// longestLimit is what a limit is at most: no work is meant to take longer, and no sum of it with a time overflows.
const longestLimit = 10 * 365 * 24 * time.Hour

// limit is a duration that limits something, however it was meant.
func limit(d time.Duration) time.Duration { return min(max(d, time.Millisecond), longestLimit) }

type fairnessKey string

func (k fairnessKey) applyToActivityCall(c *replay.ActivityCall) { c.FairnessKey = string(k) }

// maxFairnessKey is the size of a fairness key, which history holds with each call.
const maxFairnessKey = 256

// WithFairnessKey says whose an activity is: a tenant, a customer, an importance. Where one key's activities have a queue's workers to themselves
// while those of others wait, SQS delivers the others' first (its fair queues: a key is noisy that has more than a tenth of what is under way, and 30
// at least). Nothing is refused or lost by that, and without a backlog nothing changes. Activities without a key count as one key each. Keys of
// different queues have nothing to do with each other.
//
// The key has at most 256 bytes and stands in history; SQS gets a digest of it. One that is longer or not UTF-8 panics. Empty is no key.
func WithFairnessKey(key string) ActivityCallOption {
	if len(key) > maxFairnessKey || !utf8.ValidString(key) {
		panic(fmt.Sprintf("perdure: WithFairnessKey: a key of %d bytes, of %d at most, in UTF-8: %.64q", len(key), maxFairnessKey, key))
	}
	return fairnessKey(key)
}

type exclusiveKey string

func (k exclusiveKey) applyToActivityCall(c *replay.ActivityCall) { c.ExclusiveKey = string(k) }

// maxExclusiveKey is the size of an exclusive key, which history holds with each call.
const maxExclusiveKey = 256

// Exclusive says what an activity must have for itself while it runs: an account, a device. Of all activities that are called with one key, by
// whatever instances of the hub, and that are on the same work queue, one attempt runs at a time; the others wait, in the order in which their calls
// were committed. An attempt that is tried again waits anew, behind those that came meanwhile.
//
// It holds while workers keep their locks and activities heed the end of their contexts. A worker that stands still for longer than its lock (30
// seconds) has lost it: another runs the next then, and what the first still does, until it notices, it does beside that. What must bear that too says
// so to whatever it writes to, by the ids of ActivityInfo. A worker that dies keeps its key from others for as long as its lock is: 30 seconds, once
// the activity has run for 3, or else the function's timeout.
//
// The hub needs a FIFO queue beside the work queue: Exclusive in WorkQueueProps of the construct. Without it the activity fails at once, with an
// *ActivityError of type ExclusiveQueueError. An activity that is called so cannot be completed from outside: if it returns ErrPending it fails, with
// type ExclusivePendingError. A fairness key has no effect beside it. SQS takes 300 activities a second of one key.
//
// The key has at most 256 bytes and stands in history; SQS gets a digest of it. One that is empty, longer or not UTF-8 panics.
func Exclusive(key string) ActivityCallOption {
	if key == "" || len(key) > maxExclusiveKey || !utf8.ValidString(key) {
		panic(fmt.Sprintf("perdure: Exclusive: field key has %d bytes: it must have 1 to %d, in UTF-8: %.64q", len(key), maxExclusiveKey, key))
	}
	return exclusiveKey(key)
}

// CallActivity schedules an activity and returns the future of its result. fn only identifies it: it is the function, or
// the method of any value of the type, even nil, that was registered. Functions that cannot be identified (closures, one function
// under several names, methods through an interface) stop the turn with an error that explains it: use CallActivityByName or
// DefineActivity.
//
// The activity runs at least once. Its failure is an *ActivityError. An input that does not encode, or of more than
// MaxPayloadBytes, fails the future, and nothing is scheduled.
func CallActivity[In, Out any](ctx *OrchestrationContext, fn func(context.Context, In) (Out, error), in In, opts ...ActivityCallOption) *Future[Out] {
	a, why := ctx.registry.ActivityOf(fn)
	if why != "" {
		ctx.replay.Refuse(why)
	}
	return callActivity[Out](ctx, replay.ActivityCall{Name: a.Name, Queue: a.Queue, Inline: a.Inline}, in, opts)
}

// CallActivityByName is CallActivity for an activity that this program need not know. It goes to the queue it is
// registered with, or else to DefaultQueue.
func CallActivityByName[Out any](ctx *OrchestrationContext, name string, in any, opts ...ActivityCallOption) *Future[Out] {
	mustName("activity", name)
	call := replay.ActivityCall{Name: name, Queue: DefaultQueue}
	if a, ok := ctx.registry.Activity(name); ok {
		call.Queue, call.Inline = a.Queue, a.Inline
	}
	return callActivity[Out](ctx, call, in, opts)
}

func callActivity[Out any](ctx *OrchestrationContext, call replay.ActivityCall, in any, opts []ActivityCallOption) *Future[Out] {
	doc, err := ctx.encode(payload{input, activity, call.Name}, in)
	if err != nil {
		return failed[Out](ctx, call.Name, err)
	}
	call.Input = doc
	if len(opts) > 0 {
		call = withOptions(call, opts)
	}
	return &Future[Out]{task: ctx.replay.ScheduleActivity(call)}
}

// withOptions is apart, so that a call without options, as most are, stays on the stack.
func withOptions(call replay.ActivityCall, opts []ActivityCallOption) replay.ActivityCall {
	for _, opt := range opts {
		opt.applyToActivityCall(&call)
	}
	call.Inline = call.Inline && !call.WaitCancel && !call.AtMostOnce && call.Heartbeat == 0 && call.ExclusiveKey == ""
	return call
}

// failed is a future of something that was never scheduled.
func failed[T any](ctx *OrchestrationContext, name string, err error) *Future[T] {
	return &Future[T]{task: ctx.replay.Settled(name, failureOf(err)), err: err, loaded: true}
}

// CreateTimer returns a future that settles once d has passed since ctx.Now, with the time it was due. A zero or negative
// d settles it at once, and nothing is recorded. It may be years: the clock is read again when it is due, so it is never
// early, and about a second late. WithName says what it is for.
func CreateTimer(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) *Future[time.Time] {
	if d <= 0 && ctx.replay.Cancellation() == nil {
		return &Future[time.Time]{task: ctx.replay.Settled("", nil), value: ctx.Now()}
	}
	t := replay.CreateNamedTimer(ctx.replay, d, timerOf(opts).name)
	return &Future[time.Time]{task: t, value: t.FireAt()}
}

// Sleep waits until d has passed; zero and negative durations do not wait. The error is that of a cancelled wait.
func Sleep(ctx *OrchestrationContext, d time.Duration, opts ...TimerOption) error {
	_, err := CreateTimer(ctx, d, opts...).Await(ctx)
	return err
}

// endedError is what a task failed with that was cancelled by itself, or whose end was waited for.
func endedError(t *replay.Task, f *history.Failure) error {
	e := &CancelledError{Reason: CancelReason(f.Reason), Message: f.Message, Ended: CancelEnd(f.Ended)}
	if c := t.EndedWith(); c != nil {
		e.scope = cancelledError(c)
	}
	return e
}

// errorOf is what a task failed with, as its awaiter sees it; nil when it did not fail.
func errorOf(t *replay.Task) error {
	f := t.Failure()
	switch {
	case f == nil:
		return nil
	case t.Cancellation() != nil:
		return cancelledError(t.Cancellation())
	case t.IsCancelled():
		return endedError(t, f)
	case t.InstanceID() != "": // even where the task was a timer last, because the next attempt was due
		return newSubOrchestrationError(t.Name(), t.InstanceID(), replay.OpenedFailure(t))
	case t.Kind() == history.UpdateSent:
		return newCallUpdateError(t, replay.OpenedFailure(t))
	case t.ReceiverID() != "":
		return newRaiseEventError(t.Name(), t.ReceiverID(), f)
	case t.Kind() == history.TimerCreated:
		return &timerError{id: t.ID(), message: f.Message}
	default:
		return newActivityError(t.Name(), t.ID(), replay.OpenedFailure(t))
	}
}
