package perdure

import (
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// Future represents the result of a call that may still be running. It settles once, with a value or an error. You do
// not have to await a future. A future belongs to one orchestration and must not be used on other goroutines.
type Future[T any] struct {
	task   *replay.Task
	value  T
	err    error
	loaded bool // value or err has been read from the task
}

// Awaitable is a *Future of any type.
type Awaitable interface {
	// IsDone reports whether the future has settled.
	IsDone() bool
	// Cancel cancels the work of the future, as in Future.Cancel.
	Cancel(message string)

	outcome() (*replay.Task, error)
}

// IsDone reports whether the future has settled, with a value or an error. After a cancellation it returns true
// immediately. If the call used [WaitForCancellation], it returns true when the work has ended.
func (f *Future[T]) IsDone() bool { return f.task.IsDone() }

// InstanceID returns the instance ID of a sub-orchestration. With WithRetry, it is the ID of the last attempt and can
// change until the future has settled. It is empty for other futures, and if no instance was started.
func (f *Future[T]) InstanceID() string { return f.task.InstanceID() }

// Cancel cancels the work of the future, with the reason ReasonRequested. The context of a running activity ends. The
// future settles immediately with a *CancelledError. If the call used [WaitForCancellation], the future settles when
// the work has ended. A message of more than 4 KiB is truncated and marked as such.
//
// Cancel does not change a future that has settled. If its external event was not consumed, the event returns to the
// head of its queue.
func (f *Future[T]) Cancel(message string) { f.task.Cancel(string(ReasonRequested), message) }

// Await waits until the future has settled, and returns its value or error. It can be called again. If the scope of ctx
// is cancelled, Await returns ctx.Err, even if the future has settled.
func (f *Future[T]) Await(ctx *OrchestrationContext) (T, error) {
	var none T
	if c := ctx.replay.Await(f.task); c != nil {
		return none, cancelledError(c)
	}
	f.load()
	if f.err != nil {
		return none, f.err
	}
	return f.value, nil
}

// load reads the outcome of the task, once.
func (f *Future[T]) load() {
	if f.loaded {
		return
	}
	f.loaded = true
	if f.err = errorOf(f.task); f.err == nil {
		f.err = payloadjson.Decode(payloadjson.ResultOf(f.task.Kind(), f.task.Name()), f.task.TakeResult(), &f.value)
	}
}

// outcome returns the task of the future, and its error if it has failed.
func (f *Future[T]) outcome() (*replay.Task, error) {
	if !f.loaded && f.task.Failure() != nil {
		f.load()
	}
	return f.task, f.err
}

// Awaitables converts futures of one type into arguments for Select, WhenAny and WhenAll.
func Awaitables[T any](fs []*Future[T]) []Awaitable {
	as := make([]Awaitable, len(fs))
	for i, f := range fs {
		as[i] = f
	}
	return as
}
