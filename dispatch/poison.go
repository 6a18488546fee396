package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Deliveries are counted by the queue, and count outages too, which must never make poison of a message. So from the third one on a
// mark tells those apart in which the process died (R13): it is put before code runs, and taken away by whoever lives to give the
// record back. A death says little: a process that polls may be killed by its deployment, or by what runs beside it. So where a mark
// stands code runs alone from then on, and only more than Options.MaxAttempts of them, one after the other, are a verdict.

// deliveriesTogether is how often a record is delivered without a mark: it costs a write.
const deliveriesTogether = 2

// doubtful reports whether a delivery leaves a mark. A record that was picked up from the dead letters has been delivered often.
func doubtful(r *provider.Record, p *provider.PickedUp) bool {
	return r.ReceiveCount > deliveriesTogether || p != nil
}

func (t *task) doubtful() bool { return doubtful(&t.item.Record, t.item.PickedUp) }

// attemptOf is a task's delivery.
func (t *task) attemptOf() provider.Attempt {
	return provider.Attempt{ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Record: t.item.PickedUp.Of(t.item.Record)}
}

// ready finds out whether an activity is to be run here and now, beside the others of its batch or, where a mark stands, when its
// turn has come: a function that runs it, or how it ends without.
func (w *Worker) ready(ctx context.Context, t *task) (run func(context.Context) ending, hindered *ending) {
	run, hindered = w.prepare(ctx, t)
	if hindered != nil || !t.doubtful() {
		return run, hindered
	}
	if hindered = w.watch(ctx, t, true); hindered != nil || t.marked {
		return run, hindered
	}
	if !w.awaitTurn(ctx, t) {
		return nil, &ending{back: true}
	}
	t.reads, t.looks = w.readAgain(ctx, &t.item), newLook(ctx) // those of the others were before the wait
	if run, hindered = w.prepare(ctx, t); hindered == nil {
		hindered = w.watch(ctx, t, false)
	}
	return run, hindered
}

// watch leaves a mark before an activity runs, together with others only where none stands, or says how it ends without: as poison,
// when too many are there. The leases of its batch are taken by then, too.
func (w *Worker) watch(ctx context.Context, t *task, together bool) *ending {
	a := t.attemptOf()
	a.Together = together
	died, err := mark(ctx, &w.options, a)
	if t.pushed {
		<-t.shift.leased
	}
	if err != nil {
		it := &t.item
		w.options.Logger.ErrorContext(ctx, "an activity that was delivered before could not be marked, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return &ending{back: true}
	}
	t.died, t.marked = died, !together || died == 0
	if died > w.options.MaxAttempts {
		return w.poisoned(ctx, t)
	}
	return nil
}

// poisoned is the end of an activity that is not run any more.
func (w *Worker) poisoned(ctx context.Context, t *task) *ending {
	it := &t.item
	t.poison = true
	f := &history.Failure{Type: history.TypePoison, NonRetryable: true, Message: fmt.Sprintf(
		"activity %q was begun and not ended in %d deliveries, all but one of them alone: it took its process down (out of memory, os.Exit, a fatal error). "+
			"Its work item is in the dead letters of queue %q; the worker's log tells how its processes ended", it.Name, t.died, w.options.Queue)}
	w.options.Logger.ErrorContext(ctx, "activity is poison: it is not run any more, and fails", "activity", it.Name, "instance", it.InstanceID,
		"activityId", it.ActivityID, "queue", w.options.Queue, "attemptCount", it.Record.ReceiveCount, "died", t.died)
	if err := w.provider.DeadLetter(ctx, w.options.Queue, provider.Unreadable{Record: it.Record, Err: &poisonError{f}}); err != nil {
		w.options.Logger.ErrorContext(ctx, "a poison record could not be put to the dead letters", "activity", it.Name,
			"instance", it.InstanceID, "activityId", it.ActivityID, "queue", w.options.Queue, "record", it.Record.ID, "error", err)
		return &ending{back: true}
	}
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: f}
	if it.WaitCancel {
		o.Ended = history.EndWorkerGone
	}
	return &ending{outcome: o}
}

const (
	// markLimit is how long a mark may take: calls that hang must not take the process along.
	markLimit = 5 * time.Second
	// unmarkTries is how often a mark is tried to be taken away, and unmarkLimit how long that may take of what an invocation keeps to
	// tell how it ended. A mark that stays would count as a death of a process that lives.
	unmarkTries = 4
	unmarkLimit = reserve * 3 / 4
)

// mark leaves a mark, or none: of a call that failed nobody knows whether it did.
func mark(ctx context.Context, o *Options, a provider.Attempt) (died int, err error) {
	limited, stop := context.WithTimeout(ctx, markLimit)
	defer stop()
	if died, err = o.Provider.MarkAttempt(limited, a); err != nil {
		_ = unmark(ctx, o, a) // what stays is one of several that it takes
	}
	return died, err
}

// unmark takes a mark away, also when ctx has ended.
func unmark(ctx context.Context, o *Options, a provider.Attempt) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), unmarkLimit)
	defer stop()
	for range unmarkTries {
		if err = o.Provider.UnmarkAttempt(ctx, a); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// poisonError is a failure as the reason of a dead letter.
type poisonError struct{ failure *history.Failure }

func (e *poisonError) Error() string { return e.failure.Type + ": " + e.failure.Message }

// unmark takes the marks of tasks away whose records come again, before anybody else can see those: their process lives. A mark
// that stays for a failure counts as a death, of which it takes several.
func (w *Worker) unmark(ctx context.Context, tasks []*task) {
	var unmarking sync.WaitGroup
	for _, t := range tasks {
		if !t.marked || t.poison {
			continue
		}
		unmarking.Go(func() {
			if err := unmark(ctx, &w.options, t.attemptOf()); err != nil {
				w.options.Logger.WarnContext(ctx, "the mark of an activity's attempt stays", "activity", t.item.Name, "instance", t.item.InstanceID,
					"activityId", t.item.ActivityID, "error", err)
			}
		})
	}
	unmarking.Wait()
}

// sendAnew replaces the records of work items that failed again and again in a way that their code had no part in, or that were
// stopped and have made progress, and returns those that are to be given back instead.
func (w *Worker) sendAnew(ctx context.Context, back []*task) (rest []*task) {
	ctx = context.WithoutCancel(ctx)
	now := w.options.Clock()
	var replaced []*task
	var old []provider.Record
	var anew []provider.WorkItem
	for _, t := range back {
		r := t.item.Record
		if after := w.options.SendAnewAfter; after < 0 || r.ReceiveCount < after || t.signal != nil && !w.manager.progressed(t) || t.poison || t.died > 0 && !t.forgot || !r.Held(now) {
			rest = append(rest, t)
			continue
		}
		again := later(&t.item, now)
		again.PickedUp = again.PickedUp.Next(r.ID) // there may be marks, though nobody has come to ask for them
		replaced, old, anew = append(replaced, t), append(old, r), append(anew, again)
	}
	if len(old) == 0 {
		return rest
	}
	if err := w.provider.PutWorkItems(ctx, anew...); err != nil {
		w.options.Logger.WarnContext(ctx, "work items could not be sent anew, their records go back to the queue", "queue", w.options.Queue, "records", len(old), "error", err)
		return append(rest, replaced...)
	}
	if err := w.provider.DeleteRecords(ctx, w.options.Queue, old...); err != nil {
		w.options.Logger.WarnContext(ctx, "work items were sent anew, and their old records not deleted: they will be delivered again", "queue", w.options.Queue, "error", err)
	}
	return rest
}

// later is a work item that is due again after the delay of its last delivery: the longest, if it has been sent anew before.
func later(it *provider.LockedWorkItem, now time.Time) provider.WorkItem {
	delay := retryDelay(it.Record.ReceiveCount)
	if it.Anew > 0 {
		delay = longestRetryDelay
	}
	next, at := it.WorkItem, now.Add(delay).UTC()
	next.NotBefore, next.Again, next.Anew = &at, true, it.Anew+1
	return next
}
