package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// crashGuard writes crash markers, lets activities with markers run alone, and fails them as poison after too many
// (R13). Deliveries without a crash do not count, because an outage also causes deliveries. A single marker proves
// little: a deployment or another record may have killed the process.
type crashGuard struct {
	guard    *isolation.Guard
	options  *Options
	provider provider.Provider
}

func (t *task) needsMarker() bool { return intake.NeedsMarker(&t.item.Record, t.item.Redrive) }

// Delivery returns the delivery of a task, which identifies its crash marker. It implements isolation.Task.
func (t *task) Delivery() provider.Delivery {
	it := t.item
	return provider.Delivery{ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Redrive.Of(it.Record)}
}

// Crashes returns the state of the task's crash markers. It implements isolation.Task.
func (t *task) Crashes() *isolation.State { return &t.crashes }

// mark writes the crash marker of a delivery before its code runs. It refuses poison. The leases of the batch have been
// taken when mark returns.
func (g *crashGuard) mark(ctx context.Context, t *task, together bool) *result {
	err := g.guard.Mark(ctx, t, together)
	if t.lease.owned {
		<-t.batch.leased
	}
	if err != nil {
		return &released
	}
	if crashCount := t.crashes.CrashCount(); crashCount > g.options.MaxCrashes {
		return g.refusePoison(ctx, t)
	}
	return nil
}

// refusePoison moves the record of an activity to the dead-letter queue and fails the activity.
func (g *crashGuard) refusePoison(ctx context.Context, t *task) *result {
	it, queue, crashCount := t.item, g.options.Queue, t.crashes.CrashCount()
	t.crashes.SetPoison()
	f := outcome.Poison(it, crashCount, queue)
	t.Log().ErrorContext(ctx, "activity is poison, failing it", "event", logevent.ActivityPoisoned, "queue", queue,
		"attemptCount", it.Record.ReceiveCount, "died", crashCount)
	letter := provider.Unreadable{Record: it.Record, Err: intake.ReasonFor(f)}
	if err := g.provider.DeadLetter(ctx, queue, letter); err != nil {
		t.Log().ErrorContext(ctx, "moving a record to the dead-letter queue failed",
			"event", logevent.RecordDeadLetterFailed, "queue", queue, "record", it.Record.ID, "error", err)
		return &released
	}

	return t.ended(outcome.Of(it, f), cmp.Or(t.earlier.end, history.OutcomeWorkerLost))
}

// awaitTurn waits until a task with crash markers may run alone. It returns false if the record must be released. The
// supervisor renews its lease while it waits.
func (g *crashGuard) awaitTurn(ctx context.Context, t *task) bool {
	limit := intake.LongestWait
	if at := t.batch.stopAt; !at.IsZero() {
		limit = min(limit, at.Sub(g.options.Clock()))
	}
	return g.guard.AwaitTurn(ctx, t, &t.batch.suspects, &t.item.Record, limit)
}

// unmark deletes the crash markers of tasks before their records are redelivered.
func (g *crashGuard) unmark(ctx context.Context, tasks []*task) {
	needsUnmark := func(t *task) bool { return isolation.NeedsUnmark(t) }
	if slices.ContainsFunc(tasks, needsUnmark) {
		concurrently(tasks, needsUnmark, func(t **task) { g.guard.Unmark(ctx, *t) })
	}
}
