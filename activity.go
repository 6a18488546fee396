package perdure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// DefaultQueue is the worker queue of activities registered without OnQueue.
const DefaultQueue = "default"

// ActivityOption is an option of AddActivity and DefineActivity.
type ActivityOption interface{ applyToActivity(a *registry.Activity) }

type queueOption string

func (q queueOption) applyToActivity(a *registry.Activity) { a.Queue = string(q) }

// OnQueue sends an activity to a worker queue of its own, instead of DefaultQueue. An empty name panics, and one that ends with ".fifo": those are the
// queues that Exclusive leads to.
func OnQueue(name string) ActivityOption {
	mustName("OnQueue", name)
	if _, exclusive := history.OfExclusiveQueue(name); exclusive {
		panic(fmt.Sprintf("perdure: OnQueue: name %q ends as the queues do that perdure.Exclusive leads to: name the queue beside it", name))
	}
	return queueOption(name)
}

type cancelPollOption time.Duration

func (d cancelPollOption) applyToActivity(a *registry.Activity) {
	a.CancelPollInterval = time.Duration(d)
}

// CancelPollInterval is how often the worker of an activity looks whether it is cancelled while it runs, instead of as often as the
// worker does for all (PERDURE_CANCEL_POLL_INTERVAL, 250 ms). Each look is one read, for all activities of the execution that run in the process: at 250 ms and
// the list price of us-east-1, 0.11 cents an hour. An activity that runs for hours and need not be stopped at once can do with less. From 10 ms to 12 h; else it panics.
func CancelPollInterval(d time.Duration) ActivityOption {
	if d < minCancelPoll || d > maxCancelPoll {
		panic(fmt.Sprintf("perdure: CancelPollInterval of %v: want %v to %v", d, minCancelPoll, maxCancelPoll))
	}
	return cancelPollOption(d)
}

// Between these a worker may be asked to look. The upper one is what SQS keeps a record locked for.
const (
	minCancelPoll = 10 * time.Millisecond
	maxCancelPoll = 12 * time.Hour
)

// AddActivity registers an activity: a function, or a method of a value that holds what it needs. It panics when the name is
// empty or taken, or fn is nil.
//
// fn may run more than once for one call of it (a worker crashed, a message came twice), so it should bear repetition. Its
// ctx ends when the activity is cancelled or the worker must give it up; context.Cause is then a *CancelledError.
func AddActivity[In, Out any](r *Registry, name string, fn func(context.Context, In) (Out, error), opts ...ActivityOption) {
	a := newActivity(name, opts)
	if fn == nil {
		panic("perdure: activity " + name + ": nil function")
	}
	a.Out = reflect.TypeFor[Out]()
	a.Run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
		return runActivity(ctx, name, fn, input)
	}
	r.code().AddActivity(a, fn)
}

func newActivity(name string, opts []ActivityOption) registry.Activity {
	mustName("activity", name)
	a := registry.Activity{Name: name, Queue: DefaultQueue}
	for _, opt := range opts {
		opt.applyToActivity(&a)
	}
	return a
}

func runActivity[In, Out any](ctx context.Context, name string, fn func(context.Context, In) (Out, error), doc json.RawMessage) (out json.RawMessage, f *history.Failure) {
	defer func() {
		if r := recover(); r != nil {
			out, f = nil, panicFailure(r)
		}
	}()
	var in In
	if err := decode(payload{input, activity, name}, doc, &in); err != nil {
		return nil, failureOf(err)
	}
	v, err := fn(ctx, in)
	if errors.Is(err, ErrPending) {
		return nil, &history.Failure{Type: registry.TypePending, Message: err.Error()}
	}
	if err != nil {
		return nil, failureOf(err)
	}
	out, err = encodeWithin(payload{result, activity, name}, v, payloadLimit(activityctx.TakesLargePayloads(ctx)))
	if err != nil {
		return nil, failureOf(err)
	}
	return out, nil
}

// ActivityRef stands for an activity of given types without its implementation, for programs that only call it. It is made by
// DefineActivity; the methods of the zero value panic.
type ActivityRef[In, Out any] struct {
	name, queue string
	cancelPoll  time.Duration
	inline      bool
}

// DefineActivity makes a reference to the activity of that name. Share it between the program that runs the activity and
// those that call it. An empty name panics.
func DefineActivity[In, Out any](name string, opts ...ActivityOption) ActivityRef[In, Out] {
	a := newActivity(name, opts)
	return ActivityRef[In, Out]{name: a.Name, queue: a.Queue, cancelPoll: a.CancelPollInterval, inline: a.Inline}
}

// Register is AddActivity with the name and options of the reference.
func (a ActivityRef[In, Out]) Register(r *Registry, fn func(context.Context, In) (Out, error)) {
	mustName("activity", a.name)
	opts := []ActivityOption{OnQueue(a.queue), cancelPollOption(a.cancelPoll)}
	if a.inline {
		opts = append(opts, Inline())
	}
	AddActivity(r, a.name, fn, opts...)
}

// Call is CallActivity with the name and options of the reference.
func (a ActivityRef[In, Out]) Call(ctx *OrchestrationContext, in In, opts ...ActivityCallOption) *Future[Out] {
	mustName("activity", a.name)
	return callActivity[Out](ctx, replay.ActivityCall{Name: a.name, Queue: a.queue, Inline: a.inline}, in, opts)
}
