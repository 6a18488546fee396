package dispatch

import (
	"context"
	"encoding/json"
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
	back := deadLetter(ctx, w.options, w.options.Queue, unreadable)
	out := newOutcomes(len(items))
	for _, it := range items {
		go w.run(ctx, it, out)
	}
	for done := range out.runs() {
		refused, err := w.provider.AckWorkItems(ctx, w.options.Queue, done)
		if err != nil {
			w.options.Logger.ErrorContext(ctx, "outcomes were not accepted, their activities will run again", "activities", len(refused), "error", err)
		}
		back = append(back, refused...)
	}
	for i := range out.abandoned {
		back = append(back, out.abandoned[i].Record)
	}
	return abandon(ctx, w.options, w.options.Queue, back)
}

// ending is what became of a work item: an outcome to tell, nothing to tell, or nothing done, so that it goes back to its queue.
type ending struct {
	outcome *provider.ActivityOutcome
	back    bool
}

// run executes an activity and collects how it ended, whatever ends the goroutine.
func (w *Worker) run(ctx context.Context, it provider.LockedWorkItem, out *outcomes) {
	var e ending
	returned := false
	defer func() {
		if !returned {
			e = ending{outcome: vanished(&it)}
		}
		out.add(it, e)
	}()
	if early := w.early(ctx, &it); early != nil {
		e = *early
	} else {
		e = w.retried(ctx, &it, w.execute(ctx, &it))
	}
	returned = true
}

// vanished is the outcome of an activity that ended its goroutine.
func vanished(it *provider.LockedWorkItem) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: &history.Failure{
		Type: history.TypeGoexit, Message: fmt.Sprintf("activity %q called runtime.Goexit (t.FailNow does)", it.Name),
	}}
}

// execute runs one activity, if this build can.
func (w *Worker) execute(ctx context.Context, it *provider.LockedWorkItem) ending {
	activity, ok := w.options.Registry.Activity(it.Name)
	if !ok {
		w.options.Logger.ErrorContext(ctx, "activity is not registered in this build, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID)
		return ending{back: true}
	}
	input, inline := it.Input.Document()
	if !inline {
		w.options.Logger.ErrorContext(ctx, "activity input lies elsewhere, which this build cannot read", "activity", it.Name, "instance", it.InstanceID)
		return ending{back: true}
	}
	result, failure := w.attempt(perdure.ContextWithActivityInfo(ctx, info(it)), it, activity, input)
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: failure}
	if failure == nil {
		o.Result = history.Inline(result)
	}
	return ending{outcome: o}
}

// attempt runs an activity for at most its start-to-close time. One that does not come back by then has failed, whatever it
// does afterwards: nobody waits for it.
func (w *Worker) attempt(ctx context.Context, it *provider.LockedWorkItem, a perdure.Activity, input json.RawMessage) (json.RawMessage, *history.Failure) {
	if it.StartToCloseMs <= 0 {
		return a.Run(ctx, input)
	}
	limit := time.Duration(it.StartToCloseMs) * time.Millisecond
	timeout := &perdure.TimeoutError{Message: fmt.Sprintf("activity %q: its start-to-close time of %v is over", it.Name, limit)}
	ctx, stop := context.WithTimeoutCause(ctx, limit, timeout)
	defer stop()
	type returned struct {
		result  json.RawMessage
		failure *history.Failure
	}
	back := make(chan returned, 1)
	go func() {
		var r returned
		ran := false
		defer func() {
			if !ran {
				r.failure = vanished(it).Error
			}
			back <- r
		}()
		r.result, r.failure = a.Run(ctx, input)
		ran = true
	}()
	over := func() bool { return context.Cause(ctx) == error(timeout) } //nolint:errorlint // this very timeout
	select {
	case r := <-back:
		if r.failure != nil && over() {
			break // it says in its own words that its time was over
		}
		return r.result, r.failure
	case <-ctx.Done():
		if !over() {
			r := <-back
			return r.result, r.failure
		}
	}
	w.options.Logger.WarnContext(ctx, "activity is over its start-to-close time, and is not waited for any longer", "activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID)
	return nil, &history.Failure{Type: history.TypeTimeout, Message: timeout.Message}
}

func info(it *provider.LockedWorkItem) perdure.ActivityInfo {
	return perdure.ActivityInfo{
		InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Name: it.Name,
		Attempt: it.Attempt, AttemptCount: it.Record.ReceiveCount, Queue: it.Queue,
	}
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

func (o *outcomes) add(it provider.LockedWorkItem, e ending) {
	o.mu.Lock()
	o.running--
	if e.back {
		o.abandoned = append(o.abandoned, it)
	} else {
		o.done = append(o.done, provider.CompletedWorkItem{LockedWorkItem: it, Outcome: e.outcome})
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
