package perdure

import "github.com/perdure/perdure/internal/replay"

// Future is the result of something that was asked for: it settles once, with a value or an error. Like its context it
// belongs to one orchestration and must not be used on other goroutines. A future need not be awaited.
type Future[T any] struct {
	task   *replay.Task
	value  T
	err    error
	loaded bool // value or err has been taken out of the task
}

// Awaitable is any *Future[T].
type Awaitable interface {
	// IsDone reports whether the future has settled.
	IsDone() bool
	// Cancel gives up what the future stands for.
	Cancel(message string)

	outcome() (*replay.Task, error)
}

// IsDone reports whether the future has settled: with a value, with an error, or because it was cancelled; of a call that asked for
// [WaitForCancellation], because that has ended as well.
func (f *Future[T]) IsDone() bool { return f.task.IsDone() }

// InstanceID is the id of the instance that the future of a sub-orchestration stands for; with WithRetry that of the last attempt,
// so it may change until the future has settled. It is empty for the future of anything else, and where nothing was started.
func (f *Future[T]) InstanceID() string { return f.task.InstanceID() }

// Cancel gives up what the future stands for, with the reason ReasonRequested. A message of more than 4 KiB is cut, and ends with a mark of that. The
// future settles with a *CancelledError, at once but for a call that asked for [WaitForCancellation]; the context of an activity that runs ends. A future that has settled is left alone, but for an external
// event that the code has not learned of: that goes back to the head of its queue.
func (f *Future[T]) Cancel(message string) { f.task.Cancel(string(ReasonRequested), message) }

// Await waits until the future has settled and returns its value or error. It may be called again. When the scope of ctx is cancelled
// it returns ctx.Err, whatever the future is.
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

// load takes the outcome out of the task, once.
func (f *Future[T]) load() {
	if f.loaded {
		return
	}
	f.loaded = true
	if f.err = errorOf(f.task); f.err == nil {
		f.err = decode(payloadOf(f.task), f.task.TakeResult(), &f.value)
	}
}

// outcome is the untyped half of the future: its task, and the error once that is done.
func (f *Future[T]) outcome() (*replay.Task, error) {
	if !f.loaded && f.task.Failure() != nil {
		f.load()
	}
	return f.task, f.err
}

// Awaitables turns futures of one type into arguments of Select, WhenAny and WhenAll.
func Awaitables[T any](fs []*Future[T]) []Awaitable {
	as := make([]Awaitable, len(fs))
	for i, f := range fs {
		as[i] = f
	}
	return as
}
