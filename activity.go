package perdure

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/usercode"
)

// DefaultQueue is the work queue of activities that are registered without OnQueue.
const DefaultQueue = "default"

// ActivityOption is an option of AddActivity and DefineActivity.
type ActivityOption interface{ applyToActivity(a *registry.Activity) }

type activityOption func(a *registry.Activity)

func (o activityOption) applyToActivity(a *registry.Activity) { o(a) }

// OnQueue assigns an activity to the work queue of that name instead of DefaultQueue. OnQueue panics if name is empty,
// is not valid UTF-8, or ends with ".fifo". The suffix ".fifo" is reserved for the queues of Exclusive.
func OnQueue(name string) ActivityOption {
	names.MustQueue("OnQueue", name)
	return activityOption(func(a *registry.Activity) { a.Queue = name })
}

// WithCancelPollInterval sets the interval at which the worker checks whether a running activity was cancelled. The
// default is the worker's setting PERDURE_CANCEL_POLL_INTERVAL, 250 ms. The interval must be 10 ms to 12 h, otherwise
// WithCancelPollInterval panics.
//
// A check is one DynamoDB read for all activities of an execution that run in the same process. At 250 ms and us-east-1
// list prices, the checks cost 0.11 cents an hour. Use a longer interval for activities that run for hours and do not
// have to stop immediately.
func WithCancelPollInterval(d time.Duration) ActivityOption {
	names.MustCancelPoll("WithCancelPollInterval", d)
	return activityOption(func(a *registry.Activity) { a.CancelPollInterval = d })
}

// AddActivity registers fn as the activity of that name. fn is a function, or a method of a value that holds its
// dependencies. AddActivity panics if name is empty, not valid UTF-8 or already registered, or if fn is nil.
//
// fn can run more than once for one call, for example after a worker crashed or a message was delivered twice. Make it
// idempotent. The context of fn ends when the activity is cancelled or the worker must stop running it. [context.Cause]
// then returns a *CancelledError or a *TimeoutError.
func AddActivity[In, Out any](
	r *Registry, name string, fn func(context.Context, In) (Out, error), opts ...ActivityOption,
) {
	names.MustDefine("activity", name, fn != nil)
	a := newActivity(name, opts)
	a.Out = reflect.TypeFor[Out]()
	a.Run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
		return usercode.Activity(ctx, &adapter, name, fn, input)
	}
	r.code().AddActivity(a, fn)
}

func newActivity(name string, opts []ActivityOption) registry.Activity {
	names.Must("activity", name)
	a := registry.Activity{Name: name, Queue: DefaultQueue}
	for _, opt := range opts {
		opt.applyToActivity(&a)
	}
	return a
}

// ActivityRef refers to an activity by its name and types, without its implementation. Programs that only call the
// activity use it. Create an ActivityRef with DefineActivity. The methods of a zero ActivityRef panic.
type ActivityRef[In, Out any] struct {
	name, queue string
	cancelPoll  time.Duration
	inline      bool
}

// DefineActivity returns a reference to the activity of that name. Share the reference between the program that runs
// the activity and the programs that call it. DefineActivity panics if name is empty or not valid UTF-8.
func DefineActivity[In, Out any](name string, opts ...ActivityOption) ActivityRef[In, Out] {
	a := newActivity(name, opts)
	return ActivityRef[In, Out]{name: a.Name, queue: a.Queue, cancelPoll: a.CancelPollInterval, inline: a.Inline}
}

// Register registers fn with the name and options of the reference. It panics like AddActivity.
func (a ActivityRef[In, Out]) Register(r *Registry, fn func(context.Context, In) (Out, error)) {
	names.Must("activity", a.name)
	AddActivity(r, a.name, fn, activityOption(func(registered *registry.Activity) {
		registered.Queue, registered.CancelPollInterval, registered.Inline = a.queue, a.cancelPoll, a.inline
	}))
}

// Call schedules the activity like CallActivity, with the name and options of the reference.
func (a ActivityRef[In, Out]) Call(ctx *OrchestrationContext, in In, opts ...ActivityCallOption) *Future[Out] {
	names.Must("activity", a.name)
	return callActivity[Out](ctx, replay.ActivityCall{Name: a.name, Queue: a.queue, Inline: a.inline}, in, opts)
}
