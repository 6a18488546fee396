package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// crashGuard writes crash markers, lets activities with markers run alone, and fails them as poison after too many
// (R13). Deliveries alone do not count, because an outage causes them too. A single marker proves little: a deployment
// or another record may have killed the process.
type crashGuard struct {
	base     *intake.Base
	options  *Options
	provider provider.Provider
	alone    *intake.Alone
}

// crashState is the state of a task's crash markers.
type crashState struct {
	// died is the number of crash markers of other deliveries.
	died int
	// marked is true if this delivery has a crash marker, poison if the activity fails as poison.
	marked, poison bool
	// progressed is true if the markers of other deliveries were deleted because this one makes progress.
	progressed bool
	// alone is true if the task holds the process's lock for suspects. apart is true if the record is released with a
	// longer delay, so that it is not redelivered together with other suspects.
	alone, apart bool
}

// setMarkers records the markers of a delivery. If others exist, the delivery is marked only when it runs alone.
func (s *crashState) setMarkers(died int, together bool) {
	s.died = died
	s.marked = !together || died == 0
}

// setProgressed records that the markers of other deliveries were deleted.
func (s *crashState) setProgressed() { s.progressed = true }

// needsMarker reports whether the delivery of a task needs a crash marker.
func (t *task) needsMarker() bool { return intake.Doubtful(&t.item.Record, t.item.Redrive) }

// delivery returns the delivery of a task, which identifies its crash marker.
func (t *task) delivery() provider.Attempt {
	it := t.item
	return provider.Attempt{ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Redrive.Of(it.Record)}
}

// mark writes the crash marker of a delivery before its code runs. It refuses poison. When it returns, the leases of
// the batch were taken.
func (g *crashGuard) mark(ctx context.Context, t *task, together bool) *result {
	delivery := t.delivery()
	delivery.Batched = together
	died, err := intake.Mark(ctx, g.base, delivery)
	if t.lease.owned {
		<-t.batch.leased
	}
	if err != nil {
		t.log().ErrorContext(ctx, "crash marker write failed, releasing the work item",
			"event", logevent.CrashMarkerWriteFailed, "error", err)
		return &released
	}

	t.crashes.setMarkers(died, together)
	if died > g.options.MaxCrashes {
		return g.refusePoison(ctx, t)
	}
	return nil
}

// refusePoison moves the record of an activity to the dead-letter queue and fails the activity.
func (g *crashGuard) refusePoison(ctx context.Context, t *task) *result {
	it, queue, died := t.item, g.options.Queue, t.crashes.died
	t.crashes.poison = true
	f := &failure{Type: history.TypePoison, NonRetryable: true, Message: fmt.Sprintf(
		"activity %q started and did not end in %d deliveries, all but one of them alone: it crashed the process "+
			"(out of memory, os.Exit, a fatal error). See the worker's log. "+
			"The work item is in the dead-letter queue of queue %q", it.Name, died, queue)}
	t.log().ErrorContext(ctx, "activity is poison, failing it", "event", logevent.ActivityPoisoned, "queue", queue,
		"attemptCount", it.Record.ReceiveCount, "died", died)
	letter := provider.Unreadable{Record: it.Record, Err: intake.ReasonFor(f)}
	if err := g.provider.DeadLetter(ctx, queue, letter); err != nil {
		t.log().ErrorContext(ctx, "moving a record to the dead-letter queue failed",
			"event", logevent.RecordDeadLetterFailed, "queue", queue, "record", it.Record.ID, "error", err)
		return &released
	}

	o := failedOutcome(it, f)
	if it.WaitForCancellation {
		o.Ended = cmp.Or(t.earlier.end, history.OutcomeWorkerLost)
	}
	return &result{outcome: o}
}

// awaitTurn waits until a task with crash markers may run alone. It returns false if the record must be released. The
// supervisor renews its lease while it waits.
func (g *crashGuard) awaitTurn(ctx context.Context, t *task) bool {
	record := &t.item.Record
	suspects := &t.batch.suspects
	s := &isolation.Suspect{
		Died: t.crashes.died, Deliveries: record.ReceiveCount, ReceiptHandle: record.ReceiptHandle,
	}
	turn, ok := suspects.Join(s)
	if t.crashes.apart = !ok; !ok {
		return false
	}
	longest := intake.LongestWait
	if at := t.batch.stopAt; !at.IsZero() {
		longest = min(longest, at.Sub(g.options.Clock()))
	}
	timeout := time.NewTimer(longest)
	defer timeout.Stop()

	select {
	case <-turn:
		t.crashes.alone = g.alone.Take(ctx, record, timeout.C)
	case <-timeout.C:
		suspects.Leave(s)
	case <-ctx.Done():
		suspects.Leave(s)
	}
	return t.crashes.alone
}

// freeTurns releases the process's lock for suspects after the suspect has finished.
func (g *crashGuard) freeTurns(finished []finishedTask) {
	for _, e := range finished {
		if e.task.crashes.alone {
			g.alone.Release()
		}
	}
}

// unmark deletes the crash markers of tasks before their records are redelivered, because this process has survived
// them. A marker that remains after an error is only one of the several that make a record poison.
func (g *crashGuard) unmark(ctx context.Context, tasks []*task) {
	isMarked := func(t *task) bool { return t.crashes.marked && !t.crashes.poison }
	if !slices.ContainsFunc(tasks, isMarked) {
		return
	}
	var unmarking sync.WaitGroup
	for _, t := range tasks {
		if isMarked(t) {
			unmarking.Go(func() { _ = g.delete(ctx, t, t.delivery()) })
		}
	}
	unmarking.Wait()
}

// unmarkOthers deletes the crash markers of other deliveries, once, after this one has stored new heartbeat details: a
// record that crashes its process makes no progress. The marker of this delivery remains, so that an activity that
// crashes after a heartbeat still runs alone.
func (g *crashGuard) unmarkOthers(ctx context.Context, t *task) {
	s := &t.crashes
	if !s.marked || s.died == 0 || s.progressed {
		return
	}
	delivery := t.delivery()
	delivery.Progressed = true
	if g.delete(ctx, t, delivery) == nil {
		s.setProgressed()
	}
}

func (g *crashGuard) delete(ctx context.Context, t *task, delivery provider.Attempt) error {
	err := intake.Unmark(ctx, g.base, delivery)
	if err != nil {
		t.log().WarnContext(ctx, "crash marker deletion failed", "event", logevent.CrashMarkerDeleteFailed,
			"error", err)
	}
	return err
}
