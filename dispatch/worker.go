package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Worker runs activities. It is safe for concurrent use; a process has one for each queue, so that what it asks of the hub
// while activities run is asked once.
type Worker struct {
	options  Options
	provider provider.Provider
	manager  *manager
	// standings are what is known of the executions whose activities came again.
	standings *standings
	alone     *alone
	reporter  *reporter
}

// NewWorker makes a worker for Options.Queue. It calls nothing.
//
// An activity of a record that was pushed, and that takes longer than a moment, is leased: see Options.LockTimeout.
func NewWorker(opts Options) *Worker {
	w := &Worker{options: opts.withDefaults(), standings: newStandings(), alone: newAlone()}
	w.reporter = &reporter{options: &w.options}
	w.provider, w.manager = w.options.Provider, newManager(&w.options, w.reporter)
	return w
}

// Leaked is how many activities were given up so far, because they did not return within the grace after their context ended.
func (w *Worker) Leaked() int64 { return w.manager.leaked.Load() }

// HandleRecords runs the activities of a batch side by side, sends each outcome as soon as it is there and deletes the record
// then (R14). It returns the ids of the records that failed: their activities are tried again, and may be while the others of
// the batch still run.
//
// Activities that are cancelled before they begin are not run. The contexts of those that run end with a
// *perdure.CancelledError as their cause when they are cancelled, their lock is lost, ctx's deadline is near or ctx ends.
// HandleRecords waits for them for Options.CancellationGracePeriod then, and no longer.
//
// Those on which a mark stands come last, one after the other, and go back to the queue where there is no time left (R13).
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	since := w.options.Clock()
	w.reporter.atWork(ctx)
	items, unreadable := w.provider.AdoptWorkItems(ctx, records)
	failed = abandon(ctx, w.options, w.options.Queue, deadLetter(ctx, w.options, w.options.Queue, unreadable))
	if len(items) == 0 {
		return failed
	}
	return append(failed, w.serve(ctx, items, since)...)
}

// serve runs activities side by side, in an invocation that began at since.
func (w *Worker) serve(ctx context.Context, items []provider.LockedWorkItem, since time.Time) (failed []string) {
	s := w.newShift(ctx, items)
	s.since = since
	defer w.manager.enter(s)()
	w.manager.leaseEarly(ctx, s)
	for i := range s.tasks {
		go w.run(ctx, &s.tasks[i])
	}
	for ends := range s.out.runs() {
		failed = append(failed, w.tell(ctx, ends)...)
		w.manager.release(ends)
		w.told(s, ends)
	}
	return failed
}

// tell sends the outcomes of tasks and deletes their records, and gives back at once what did not come to that.
func (w *Worker) tell(ctx context.Context, ends []ended) (failed []string) {
	var done []provider.CompletedWorkItem
	var back []*task
	for _, e := range w.keepOutcomes(ctx, ends) {
		if e.back {
			back = append(back, e.task)
		} else {
			done = append(done, provider.CompletedWorkItem{LockedWorkItem: e.task.item, Outcome: named(e.task, e.outcome)})
		}
	}
	if len(done) > 0 {
		refused, err := w.ack(ctx, ends, done)
		if err != nil {
			w.options.Logger.ErrorContext(ctx, "outcomes were not accepted, their activities will run again", "activities", len(refused), "error", err)
		}
		back = append(back, tasksOf(ends, refused)...)
	}
	w.unmark(ctx, back)
	w.leaveRuns(ctx, back)
	return w.giveBack(ctx, w.sendAnew(ctx, back))
}

// ack tells how work items ended, and unmarks those whose records it could not delete, since they come again, or that ran alone: those
// cost so little, and it takes several marks. It leaves the rest of the
// invocation some of its reserve: what is refused by calls that hang goes back without its mark.
func (w *Worker) ack(ctx context.Context, ends []ended, done []provider.CompletedWorkItem) (refused []provider.Record, err error) {
	limited := ctx
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(w.options.Clock())
		l, stop := context.WithTimeout(ctx, left-min(unmarkLimit, left/2))
		defer stop()
		limited = l
	}
	refused, err = w.provider.AckWorkItems(limited, w.options.Queue, done)
	var stay []*task
	for _, e := range ends {
		if h := e.task.item.Record.Hold; !e.back && (e.task.died > 0 || h != nil && !h.Ended()) {
			stay = append(stay, e.task)
		}
	}
	w.unmark(ctx, stay)
	return refused, err
}

// tasksOf finds the tasks of records.
func tasksOf(ends []ended, records []provider.Record) (tasks []*task) {
	for _, e := range ends {
		if slices.ContainsFunc(records, func(r provider.Record) bool { return r.ID == e.task.item.Record.ID }) {
			tasks = append(tasks, e.task)
		}
	}
	return tasks
}

// giveBack makes records visible again soon, also when ctx has ended, but for those whose lock is over: they may be somebody
// else's.
func (w *Worker) giveBack(ctx context.Context, tasks []*task) (failed []string) {
	ctx, now := context.WithoutCancel(ctx), w.options.Clock()
	var held, apart []provider.Record
	for _, t := range tasks {
		switch r := t.item.Record; {
		case !r.Held(now):
			failed = append(failed, r.ID)
		case t.apart:
			apart = append(apart, r)
		default:
			held = append(held, r)
		}
	}
	failed = append(failed, abandon(ctx, w.options, w.options.Queue, held)...)
	return append(failed, abandonAfter(ctx, w.options, w.options.Queue, apart, spread)...)
}

// ending is what became of a work item: an outcome to tell, nothing to tell, or nothing done, so that it goes back to its queue.
type ending struct {
	outcome *provider.ActivityOutcome
	back    bool
}

// run executes an activity and collects how it ended, whatever ends the goroutine.
func (w *Worker) run(ctx context.Context, t *task) {
	out := t.shift.out
	ctx = perdure.ContextWithActivityInfo(ctx, info(&t.item))
	run, hindered := w.ready(ctx, t)
	if hindered != nil {
		out.add(ended{t, *hindered})
		return
	}
	activity, ok := w.manager.begin(t)
	if !ok {
		out.add(ended{t, ending{back: true}})
		return
	}
	e := ending{outcome: vanished(&t.item)}
	defer func() { w.finish(ctx, t, e) }()
	activity = perdure.ContextWithHeartbeats(perdure.ContextWithActivityInfo(activity, info(&t.item)), heart{w.manager, t})
	e = run(activity) //nolint:contextcheck // ctx's end does not end it: the manager does
}

// finish takes how an activity ended, unless it was given up: its sender is fenced then.
func (w *Worker) finish(ctx context.Context, t *task, e ending) {
	if !w.manager.end(t) {
		w.options.Logger.InfoContext(ctx, "a leaked activity has returned, and is not heard", t.about()...)
		return
	}
	t.cancel(nil)
	if t.signal != nil {
		w.tellEnd(ctx, t, e)
	}
	if e = t.endingOf(e); e.back {
		w.manager.flush(ctx, t)
		e = w.manager.countRunOut(ctx, t, true)
	}
	switch {
	case t.signal == nil, e.outcome != nil && onlyOfWorkers(t.signal.Reason):
		e = w.retried(ctx, t, e)
	case !e.back:
		w.manager.leave(ctx, t, t.signalled, e.returned())
		e = t.endedAs(e, history.EndReturned)
	default:
		w.options.Logger.WarnContext(ctx, "activity was stopped by its worker and is tried again: its work item goes back to the queue",
			t.about("attemptCount", t.item.Record.ReceiveCount, "reason", string(t.signal.Reason), "message", t.signal.Message,
				"ranFor", w.options.Clock().Sub(t.began))...)
	}
	t.shift.out.add(ended{t, e})
}

// prepare finds out whether an activity is to be run here and now: a function that runs it, or how it ends without.
func (w *Worker) prepare(ctx context.Context, t *task) (run func(context.Context) ending, hindered *ending) {
	it := &t.item
	reads, hop := t.reads, false
	if it.NotBefore != nil {
		if hop = it.NotBefore.Sub(w.options.Clock()) > waitHere; !hop {
			if err := waitUntil(ctx, w.options.Clock, *it.NotBefore); err != nil {
				return nil, &ending{back: true}
			}
			reads, t.looks = w.readAgain(ctx, it), newLook(ctx) // those of the others were before the wait
		}
	}
	cancel, heard, hindered, err := w.lookAtCancel(ctx, t, reads, hop)
	switch {
	case hindered != nil:
		return nil, hindered
	case err != nil:
		w.options.Logger.ErrorContext(ctx, "it cannot be read whether an activity is cancelled, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return nil, &ending{back: true}
	case cancel.Requested:
		w.options.Logger.InfoContext(ctx, "activity was cancelled before it began, and is not run",
			t.about("reason", cancel.Reason, "message", cancel.Message, "decidedFor", max(0, w.options.Clock().Sub(cancel.RequestedAt)))...)
		t.deleted, t.unheard = cancel.Deleted, cancel.Ended
		w.manager.leave(ctx, t, w.options.Clock(), provider.EndNeverStarted)
		return nil, w.notBegun(ctx, t, cancel)
	}
	t.heard = heard
	over, err := w.isOver(ctx, t)
	switch {
	case err != nil:
		w.options.Logger.ErrorContext(ctx, "it cannot be read whether an activity that is delivered again has ended, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return nil, &ending{back: true}
	case over:
		w.options.Logger.InfoContext(ctx, "an activity that is delivered again has ended, or has another attempt by now, and is not run",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "attempt", it.Attempt, "attemptCount", it.Record.ReceiveCount)
		return nil, &ending{}
	case tooLate(&it.WorkItem, w.options.Clock()):
		return nil, &ending{outcome: w.closed(ctx, t)}
	case hop:
		e := w.hop(ctx, it)
		return nil, &e
	}
	return w.runnable(ctx, t)
}

// lookAtCancel finds out whether an activity is cancelled. One that is waited for then takes its run first.
func (w *Worker) lookAtCancel(ctx context.Context, t *task, reads *provider.CancelRead, hop bool) (cancel provider.CancelInfo, heard int64, hindered *ending, err error) {
	if t.item.WaitCancel && !hop {
		cancel, heard, hindered = w.takeRun(ctx, t)
		return cancel, heard, hindered, nil
	}
	cancel, heard, err = reads.Of(t.item.ActivityID)
	return cancel, heard, nil, err
}

// readAgain is a read of an activity's own: that of its batch is of before it waited.
func (w *Worker) readAgain(ctx context.Context, it *provider.LockedWorkItem) *provider.CancelRead {
	return provider.NewCancelRead(ctx, w.provider.ReadCancels, it.ExecutionID, it.Segment)
}

// vanished is the outcome of an activity that ended its goroutine.
func vanished(it *provider.LockedWorkItem) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: &history.Failure{
		Type: history.TypeGoexit, Message: fmt.Sprintf("activity %q called runtime.Goexit (t.FailNow does)", it.Name),
	}}
}

// runnable finds an activity, if this build can run it.
func (w *Worker) runnable(ctx context.Context, t *task) (run func(context.Context) ending, hindered *ending) {
	it := &t.item
	activity, ok := w.options.Registry.Activity(it.Name)
	if !ok {
		w.options.Logger.ErrorContext(ctx, "activity is not registered in this build, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID)
		w.manager.disown(ctx, t)
		return nil, &ending{back: true}
	}
	input, inline := it.Input.Document()
	if !inline {
		w.options.Logger.ErrorContext(ctx, "activity input lies elsewhere, which this build cannot read: its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID)
		return nil, &ending{back: true}
	}
	if !w.remember(ctx, t) {
		return nil, &ending{back: true}
	}
	return func(ctx context.Context) ending {
		result, failure := w.attempt(ctx, t, activity, input)
		o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: failure}
		if failure == nil {
			o.Result = history.Inline(result)
		}
		if it.WaitCancel && t.abandoned {
			o.Ended = history.EndGivenUp
		}
		return ending{outcome: o}
	}, nil
}

func info(it *provider.LockedWorkItem) perdure.ActivityInfo {
	return perdure.ActivityInfo{
		InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Name: it.Name,
		Attempt: it.Attempt, AttemptCount: it.Record.ReceiveCount, Queue: it.Queue,
	}
}
