package work

import (
	"cmp"
	"context"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// The queue counts deliveries, outages among them, and an outage must never make poison of a message. So from the third delivery on a
// mark shows in which of them the process died (R13): it is left before code runs, and taken away by a process that lives to give the
// record back. A death says little: a process that polls may be killed by its deployment, or by what runs beside it. So where a mark
// stands code runs alone from then on, and only more than Options.MaxCrashes of them, one after the other, are a verdict.

// suspicion is what the deliveries of a task's record have come to.
type suspicion struct {
	// died is how many other deliveries began, and took their process down or went down with it.
	died int
	// marked: this delivery has left a mark. poison: the activity is not run any more.
	marked, poison bool
	// forgotten: the marks of the other deliveries are taken away, since the activity makes progress. It is written while details are.
	forgotten bool

	// turn is closed when a suspect may run; single: it holds the process's one place for suspects. apart: it goes back for so long that
	// it does not come together with others like it again.
	turn          chan struct{}
	single, apart bool
}

// leftMark notes that a delivery was marked, unless others were: then it is marked when it runs alone.
func (s *suspicion) leftMark(died int, together bool) {
	s.died = died
	s.marked = !together || died == 0
}

// forget notes that the marks of the other deliveries are taken away.
func (s *suspicion) forget() { s.forgotten = true }

func (t *task) doubtful() bool { return intake.Doubtful(&t.item.Record, t.item.Redrive) }

// attempt is a task's delivery.
func (t *task) attempt() provider.Attempt {
	return provider.Attempt{ExecutionID: t.item.ExecutionID, ActivityID: t.item.ActivityID, Record: t.item.Redrive.Of(t.item.Record)}
}

// mark leaves a mark before an activity runs, together with others only where none stands. Where too many stand it returns the result of
// poison. The leases of the batch are taken by then, too.
func (a *admission) mark(ctx context.Context, t *task, together bool) *result {
	attempt := t.attempt()
	attempt.Batched = together
	died, err := intake.Mark(ctx, a.base, attempt)
	if t.lease.ours {
		<-t.batch.leased
	}
	if err != nil {
		t.log().ErrorContext(ctx, "crash marker write failed, releasing the work item",
			"event", logevent.CrashMarkerWriteFailed, "error", err)
		return &result{back: true}
	}

	t.suspicion.leftMark(died, together)
	if died > a.options.MaxCrashes {
		return a.poisoned(ctx, t)
	}
	return nil
}

// poisoned is the result of an activity that is not run any more.
func (a *admission) poisoned(ctx context.Context, t *task) *result {
	it, queue, died := t.item, a.options.Queue, t.suspicion.died
	t.suspicion.poison = true
	f := &history.Failure{Type: history.TypePoison, NonRetryable: true, Message: fmt.Sprintf(
		"activity %q started and did not end in %d deliveries, all but one of them alone: it crashed the process "+
			"(out of memory, os.Exit, a fatal error). See the worker's log. "+
			"The work item is in the dead-letter queue of queue %q", it.Name, died, queue)}
	t.log().ErrorContext(ctx, "activity is poison, failing it", "event", logevent.ActivityPoisoned, "queue", queue,
		"attemptCount", it.Record.ReceiveCount, "died", died)
	if err := a.provider.DeadLetter(ctx, queue, provider.Unreadable{Record: it.Record, Err: intake.ReasonFor(f)}); err != nil {
		t.log().ErrorContext(ctx, "moving a record to the dead-letter queue failed",
			"event", logevent.RecordDeadLetterFailed, "queue", queue, "record", it.Record.ID, "error", err)
		return &result{back: true}
	}

	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: f}
	if it.WaitForCancellation {
		o.Ended = cmp.Or(t.past.end, history.OutcomeWorkerLost)
	}
	return &result{outcome: o}
}
