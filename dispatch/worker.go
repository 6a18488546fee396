package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Worker runs activities. It is safe for concurrent use.
type Worker struct {
	options  Options
	provider provider.Provider
}

// NewWorker makes a worker for Options.Queue. It calls nothing.
func NewWorker(opts Options) *Worker {
	opts = opts.withDefaults()
	return &Worker{options: opts, provider: opts.Provider}
}

// HandleRecords runs the activities of a batch side by side, sends each outcome as soon as it is there and deletes the record
// then (R14). It returns the ids of the records that failed: their activities are tried again.
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	items, unreadable := w.provider.AdoptWorkItems(records)
	failed = deadLetter(ctx, w.options, w.options.Queue, unreadable)
	out := newOutcomes(len(items))
	for _, it := range items {
		go w.run(ctx, it, out)
	}
	for done := range out.runs() {
		ids, err := w.provider.AckWorkItems(ctx, w.options.Queue, done)
		if err != nil {
			w.options.Logger.ErrorContext(ctx, "outcomes were not accepted, their activities will run again", "activities", len(ids), "error", err)
		}
		failed = append(failed, ids...)
	}
	return append(failed, w.giveBack(ctx, out.abandoned)...)
}

// run executes an activity and collects its outcome, whatever ends the goroutine.
func (w *Worker) run(ctx context.Context, it provider.LockedWorkItem, out *outcomes) {
	var o *provider.ActivityOutcome
	returned := false
	defer func() {
		if !returned {
			o = vanished(&it)
		}
		out.add(it, o)
	}()
	o = w.execute(ctx, &it)
	returned = true
}

// vanished is the outcome of an activity that ended its goroutine.
func vanished(it *provider.LockedWorkItem) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: &history.Failure{
		Type: history.TypeGoexit, Message: fmt.Sprintf("activity %q called runtime.Goexit (t.FailNow does)", it.Name),
	}}
}

// giveBack makes visible again what this build cannot run: a worker of another generation may.
func (w *Worker) giveBack(ctx context.Context, items []provider.LockedWorkItem) (failed []string) {
	if len(items) == 0 {
		return nil
	}
	records := make([]provider.Record, len(items))
	for i := range items {
		records[i] = items[i].Record
		failed = append(failed, items[i].Record.ID)
	}
	abandon(ctx, w.options, w.options.Queue, records)
	return failed
}

// execute runs one activity. A nil outcome means that it could not be run here.
func (w *Worker) execute(ctx context.Context, it *provider.LockedWorkItem) *provider.ActivityOutcome {
	activity, ok := w.options.Registry.Activity(it.Name)
	if !ok {
		w.options.Logger.ErrorContext(ctx, "activity is not registered in this build, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID)
		return nil
	}
	input, inline := it.Input.Document()
	if !inline {
		w.options.Logger.ErrorContext(ctx, "activity input lies elsewhere, which this build cannot read", "activity", it.Name, "instance", it.InstanceID)
		return nil
	}
	ctx, stop := w.bounded(perdure.ContextWithActivityInfo(ctx, info(it)), it)
	defer stop()
	result, failure := activity.Run(ctx, input)
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: failure}
	if failure == nil {
		o.Result = history.Inline(result)
	}
	return o
}

func info(it *provider.LockedWorkItem) perdure.ActivityInfo {
	return perdure.ActivityInfo{
		InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Name: it.Name,
		Attempt: it.Attempt, AttemptCount: it.Record.ReceiveCount, Queue: it.Queue,
	}
}

// bounded ends the activity's context after its start-to-close time.
func (w *Worker) bounded(ctx context.Context, it *provider.LockedWorkItem) (context.Context, context.CancelFunc) {
	if it.StartToCloseMs <= 0 {
		return context.WithCancel(ctx)
	}
	d := time.Duration(it.StartToCloseMs) * time.Millisecond
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("activity %q: start-to-close of %v is over: %w", it.Name, d, context.DeadlineExceeded))
}

// linger is how long an outcome waits for others of its batch to be sent with: one message, and one turn, for several.
const linger = 5 * time.Millisecond

// outcomes collects what activities that run side by side end with.
type outcomes struct {
	mu        sync.Mutex
	running   int
	done      []provider.CompletedWorkItem
	abandoned []provider.LockedWorkItem
	changed   chan struct{} // capacity 1
}

func newOutcomes(running int) *outcomes {
	return &outcomes{running: running, changed: make(chan struct{}, 1)}
}

func (o *outcomes) add(it provider.LockedWorkItem, out *provider.ActivityOutcome) {
	o.mu.Lock()
	o.running--
	if out == nil {
		o.abandoned = append(o.abandoned, it)
	} else {
		o.done = append(o.done, provider.CompletedWorkItem{LockedWorkItem: it, Outcome: out})
	}
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *outcomes) look() (done, running int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.done), o.running
}

func (o *outcomes) take() []provider.CompletedWorkItem {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.done
	o.done = nil
	return done
}

// runs yields outcomes as they come, those within a linger together, until all activities have ended.
func (o *outcomes) runs() func(yield func([]provider.CompletedWorkItem) bool) {
	return func(yield func([]provider.CompletedWorkItem) bool) {
		for {
			done, running := o.look()
			if done > 0 {
				o.await(time.After(linger))
				if !yield(o.take()) {
					return
				}
				continue
			}
			if running == 0 {
				return
			}
			<-o.changed
		}
	}
}

// await returns when no activity is running any more, or at the given time.
func (o *outcomes) await(until <-chan time.Time) {
	for {
		if _, running := o.look(); running == 0 {
			return
		}
		select {
		case <-o.changed:
		case <-until:
			return
		}
	}
}
