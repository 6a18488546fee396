package perdure

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// ActivityCallOption is an option of an activity call.
type ActivityCallOption interface{ applyToActivityCall(c *replay.ActivityCall) }

type activityCallOption func(c *replay.ActivityCall)

func (o activityCallOption) applyToActivityCall(c *replay.ActivityCall) { o(c) }

// WithStartToCloseTimeout limits the run time of each attempt of an activity, from its start by a worker. When d has
// elapsed, the context of the attempt ends and the attempt fails with a *TimeoutError.
//
// d is rounded up to whole milliseconds, and limited to the range from 1 ms to ten years.
func WithStartToCloseTimeout(d time.Duration) ActivityCallOption {
	return activityCallOption(func(c *replay.ActivityCall) { c.StartToClose = limit(d) })
}

// WithHeartbeatTimeout limits the time between two heartbeats of an attempt. The start and the end of the attempt count
// as heartbeats. When d has elapsed without a heartbeat, the context of the attempt ends and the attempt fails with a
// *TimeoutError. A result that the activity returns later is ignored. Use the option to detect a long activity that
// hangs. d is rounded and limited as in WithStartToCloseTimeout.
func WithHeartbeatTimeout(d time.Duration) ActivityCallOption {
	return activityCallOption(func(c *replay.ActivityCall) { c.Heartbeat = limit(d) })
}

// WithScheduleToCloseTimeout limits the total time of an activity, from the turn that schedules it. The time includes
// the wait for a worker, all attempts, and the waits between them. When d has elapsed, the activity fails with a
// *TimeoutError, and the context of a running attempt ends. If no worker runs the activity at that time, or if its
// worker has died, the activity fails up to one second late. If the next attempt would start after that time, the
// activity fails immediately with the error of the last attempt. d is rounded and limited as in
// WithStartToCloseTimeout.
func WithScheduleToCloseTimeout(d time.Duration) ActivityCallOption {
	return activityCallOption(func(c *replay.ActivityCall) { c.ScheduleToClose = limit(d) })
}

// longestLimit is the longest timeout. The sum of a time and a timeout cannot overflow.
const longestLimit = 10 * 365 * 24 * time.Hour

// limit clamps a duration to 1 ms to ten years.
func limit(d time.Duration) time.Duration { return min(max(d, time.Millisecond), longestLimit) }

// WithFairnessKey assigns the activity to a tenant for SQS fair queues. While the activities of one key occupy the
// workers of a queue, SQS delivers the activities of other keys first. SQS does this for keys with at least 30 messages
// in flight and more than a tenth of all messages in flight. Nothing is rejected or lost, and without a backlog the
// option has no effect. Each activity without a key counts as a separate tenant. Keys of different queues are
// independent.
//
// The key is at most 256 bytes of UTF-8, otherwise WithFairnessKey panics. An empty key is the same as no key. The
// history stores the key, but SQS receives only a digest.
func WithFairnessKey(key string) ActivityCallOption {
	names.MustKey("WithFairnessKey", key, 0)
	return activityCallOption(func(c *replay.ActivityCall) { c.FairnessKey = key })
}

// Exclusive limits a key to one running attempt at a time, across all instances of the hub. It applies to the
// activities of one work queue. Other attempts with the same key wait in the order in which their calls were committed.
// A retry waits behind all attempts that are already waiting. SQS accepts 300 activities a second for one key.
//
// A worker that hangs for longer than its lock on the message (30 seconds) loses the key. The next attempt can then
// start while the first one still runs. Pass the IDs of ActivityInfo to a service that must reject writes of the
// earlier attempt. If a worker dies, the key stays locked for 30 seconds, or for the function's timeout if the activity
// had run for less than 3 seconds and was delivered at most twice.
//
// Limits:
//
//   - The hub needs a FIFO queue for the work queue. Set Exclusive in WorkQueueProps of the CDK construct. Without the
//     FIFO queue, the activity fails with an *ActivityError of type ExclusiveQueueError.
//   - An activity that returns ErrPending fails with type ExclusivePendingError.
//   - The activity never runs inline, and a fairness key has no effect on it.
//
// The key is 1 to 256 bytes of UTF-8, otherwise Exclusive panics. The history stores the key, but SQS receives only a
// digest. See docs/guides/exclusive-keys.md.
func Exclusive(key string) ActivityCallOption {
	names.MustKey("Exclusive", key, 1)
	return activityCallOption(func(c *replay.ActivityCall) { c.ExclusiveKey = key })
}

// CallActivity schedules an activity and returns the future of its result. CallActivity uses fn only to identify the
// activity and does not call it. Pass the registered function, or the same method of any value of the type, even nil.
// CallActivity cannot identify a closure, an interface method, or a function that is registered under several names,
// and stops the turn with an error. Use CallActivityByName or DefineActivity for such functions.
//
// The activity runs at least once. If the activity fails, the future fails with an *ActivityError. If the input cannot
// be encoded or is larger than MaxPayloadBytes, the future fails and nothing is scheduled.
func CallActivity[In, Out any](
	ctx *OrchestrationContext, fn func(context.Context, In) (Out, error), in In, opts ...ActivityCallOption,
) *Future[Out] {
	a, why := ctx.registry.ActivityOf(fn)
	if why != "" {
		ctx.replay.Refuse(why)
	}
	return callActivity[Out](ctx, replay.ActivityCall{Name: a.Name, Queue: a.Queue, Inline: a.Inline}, in, opts)
}

// CallActivityByName schedules the activity of that name like CallActivity. The activity does not have to be registered
// in this program. An activity that is registered here runs on its registered queue. Other activities run on
// DefaultQueue. CallActivityByName panics if name is empty or not valid UTF-8.
func CallActivityByName[Out any](
	ctx *OrchestrationContext, name string, in any, opts ...ActivityCallOption,
) *Future[Out] {
	names.Must("activity", name)
	call := replay.ActivityCall{Name: name, Queue: DefaultQueue}
	if a, ok := ctx.registry.Activity(name); ok {
		call.Queue, call.Inline = a.Queue, a.Inline
	}
	return callActivity[Out](ctx, call, in, opts)
}

func callActivity[Out any](
	ctx *OrchestrationContext, call replay.ActivityCall, in any, opts []ActivityCallOption,
) *Future[Out] {
	doc, err := ctx.encode(payloadjson.Input(payloadjson.Activity, call.Name), in)
	if err != nil {
		return failed[Out](ctx, call.Name, err)
	}
	call.Input = doc
	if len(opts) > 0 {
		call = withOptions(call, opts)
	}
	return &Future[Out]{task: ctx.replay.ScheduleActivity(call)}
}

// withOptions applies options, some of which exclude inline execution. It is a separate function, so that a call
// without options is allocated on the stack.
func withOptions(call replay.ActivityCall, opts []ActivityCallOption) replay.ActivityCall {
	for _, opt := range opts {
		opt.applyToActivityCall(&call)
	}
	call.Inline = call.Inline && !call.WaitCancel && !call.AtMostOnce && call.Heartbeat == 0 && call.ExclusiveKey == ""
	return call
}

// failed returns a failed future for work that was not scheduled.
func failed[T any](ctx *OrchestrationContext, name string, err error) *Future[T] {
	return &Future[T]{task: ctx.replay.Settled(name, failureOf(err)), err: err, loaded: true}
}

// AtMostOnce starts the code of an activity at most once in each attempt. Use it for work that must not happen twice
// and that has no idempotency key, such as a payment. Without AtMostOnce, an activity runs again if its worker dies.
//
// If the worker dies or stops, loses its lock on the message, or cannot record the start reliably, the attempt fails
// with an *[InterruptedError]. Its work may then be complete, partial or not started. [WithRetry] makes another
// attempt. To handle the error in the orchestration instead, use no retry policy, or add "interrupted" to
// [RetryPolicy.NonRetryableErrorTypes].
//
// The failure is reported when the message is redelivered, by default 30 seconds after the worker died. If the worker
// died in the first 3 seconds of the activity, and this was one of the first two deliveries, the message is redelivered
// after the function's timeout.
//
// Limits:
//
//   - The activity must finish within one invocation. A heartbeat does not continue an attempt in another invocation.
//   - The activity never runs inline.
//   - A restart from an event ([client.FromEvent]) starts the activities that were running at that event again. After a
//     restore of the hub's table, activities that started after the restored second start again.
//   - Workers in other languages ignore the option and run the activity at least once.
//
// The option is recorded with the call. For each activity, the worker makes one read and two writes, and one more write
// every 15 seconds. All workers must run a release that supports AtMostOnce before orchestrations use it.
func AtMostOnce() ActivityCallOption {
	return activityCallOption(func(c *replay.ActivityCall) { c.AtMostOnce = true })
}
