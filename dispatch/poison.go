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

// Deliveries are counted by the queue, and count outages too, which must never make poison of a message. So beyond
// Options.MaxAttempts a mark tells those apart in which code took its process down (R13): it is put before code runs, and taken
// away by whoever lives to do so.

// deathsOfPoison is how many marked deliveries must have ended in the death of their process. One says little: a process that polls may
// be killed by its deployment, or by what runs beside it.
const deathsOfPoison = 3

// deliveriesTogether is how often a record is delivered with its code running beside that of others. After that it runs when the
// others of its batch are done, alone: one that kills its process must not use up the attempts of its neighbours.
const deliveriesTogether = 2

// inCompany tells the work items that may run side by side from those that run alone, the least often delivered first.
func inCompany(items []provider.LockedWorkItem) (together, alone []provider.LockedWorkItem) {
	for i := range items {
		if items[i].Record.ReceiveCount > deliveriesTogether {
			alone = append(alone, items[i])
		} else {
			together = append(together, items[i])
		}
	}
	slices.SortStableFunc(alone, func(a, b provider.LockedWorkItem) int { return a.Record.ReceiveCount - b.Record.ReceiveCount })
	return together, alone
}

// leaveToOthers gives back at once what would run alone behind another of its batch: should that one kill the process, they must not
// wait for as long as the invocation's records are locked. They come again in an invocation of their own.
func leaveToOthers(ctx context.Context, o Options, queue string, records []provider.Record) (failed []string) {
	if len(records) == 0 {
		return nil
	}
	return abandon(ctx, o, queue, records)
}

// attemptOf is a task's delivery.
func (t *task) attemptOf() provider.Attempt {
	return provider.Attempt{ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Record: t.item.PickedUp.Of(t.item.Record)}
}

// watch leaves a mark before an activity runs that was delivered too often, or says how it ends without: as poison, when too
// many of its marks are still there.
func (w *Worker) watch(ctx context.Context, t *task) *ending {
	it := &t.item
	if it.Record.ReceiveCount <= w.options.MaxAttempts {
		return nil
	}
	died, err := mark(ctx, &w.options, t.attemptOf())
	if err != nil {
		w.options.Logger.ErrorContext(ctx, "an activity that was delivered too often could not be marked, its work item goes back to the queue",
			"activity", it.Name, "instance", it.InstanceID, "activityId", it.ActivityID, "error", err)
		return &ending{back: true}
	}
	t.marked = true
	if died < deathsOfPoison {
		return nil
	}
	t.poison = true
	f := &history.Failure{Type: history.TypePoison, NonRetryable: true, Message: fmt.Sprintf(
		"activity %q was begun and not ended in %d deliveries of %d: it took its process down (out of memory, os.Exit, a fatal error), or ran into the end of its invocation. "+
			"Its work item is in the dead letters of queue %q; the worker's log tells how its processes ended", it.Name, died, it.Record.ReceiveCount-1, w.options.Queue)}
	w.options.Logger.ErrorContext(ctx, "activity is poison: it is not run any more, and fails", "activity", it.Name, "instance", it.InstanceID,
		"activityId", it.ActivityID, "queue", w.options.Queue, "attemptCount", it.Record.ReceiveCount, "died", died)
	if err := w.provider.DeadLetter(ctx, w.options.Queue, provider.Unreadable{Record: it.Record, Err: &poisonError{f}}); err != nil {
		w.options.Logger.ErrorContext(ctx, "a poison record could not be put to the dead letters", "activity", it.Name,
			"instance", it.InstanceID, "activityId", it.ActivityID, "queue", w.options.Queue, "record", it.Record.ID, "error", err)
		return &ending{back: true}
	}
	return &ending{outcome: &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: f}}
}

// unmarkTries is how often a mark is tried to be taken away. One that stays would count as a death of a process that lives.
const unmarkTries = 4

// mark leaves a mark, or none: of a call that failed nobody knows whether it did.
func mark(ctx context.Context, o *Options, a provider.Attempt) (died int, err error) {
	if died, err = o.Provider.MarkAttempt(ctx, a); err != nil {
		_ = unmark(ctx, o, a) // what stays is one of several that it takes
	}
	return died, err
}

// unmark takes a mark away, also when ctx has ended.
func unmark(ctx context.Context, o *Options, a provider.Attempt) (err error) {
	for range unmarkTries {
		if err = o.Provider.UnmarkAttempt(context.WithoutCancel(ctx), a); err == nil {
			return nil
		}
	}
	return err
}

// poisonError is a failure as the reason of a dead letter.
type poisonError struct{ failure *history.Failure }

func (e *poisonError) Error() string { return e.failure.Type + ": " + e.failure.Message }

// unmark takes the marks of those tasks away whose code did not end their process, before their records can be seen by anybody
// else. A mark that stays for a failure counts as a death, of which it takes several.
func (w *Worker) unmark(ctx context.Context, ends []ended) {
	for _, e := range ends {
		t := e.task
		if !t.marked || t.poison || t.ranOut() {
			continue
		}
		if err := unmark(ctx, &w.options, t.attemptOf()); err != nil {
			w.options.Logger.WarnContext(ctx, "the mark of an activity's attempt stays", "activity", t.item.Name, "instance", t.item.InstanceID,
				"activityId", t.item.ActivityID, "error", err)
		}
	}
}

// ranOut reports whether an activity ran into the end of its invocation, of which it had its fair share: one that came late, since
// it had to wait for others, may well end in another.
func (t *task) ranOut() bool {
	return t.signal != nil && t.signal.Reason == perdure.ReasonDeadline && !t.shift.tellAt.IsZero() &&
		t.began.Sub(t.shift.since) <= t.shift.tellAt.Sub(t.began)
}

// sendAnew replaces the records of work items that failed again and again in a way that their code had no part in, and returns those
// that are to be given back instead.
func (w *Worker) sendAnew(ctx context.Context, back []*task) (rest []provider.Record) {
	ctx = context.WithoutCancel(ctx)
	now := w.options.Clock()
	var old []provider.Record
	var anew []provider.WorkItem
	for _, t := range back {
		r := t.item.Record
		if after := w.options.SendAnewAfter; after < 0 || r.ReceiveCount < after || t.signal != nil || t.poison || !r.Held(now) {
			rest = append(rest, r)
			continue
		}
		old, anew = append(old, r), append(anew, later(&t.item, now))
	}
	if len(old) == 0 {
		return rest
	}
	if err := w.provider.PutWorkItems(ctx, anew...); err != nil {
		w.options.Logger.WarnContext(ctx, "work items could not be sent anew, their records go back to the queue", "queue", w.options.Queue, "records", len(old), "error", err)
		return append(rest, old...)
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
