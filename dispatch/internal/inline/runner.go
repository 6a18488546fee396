// Package inline runs activities in the invocation that schedules them, between a turn and its commit (R20).
//
// The code runs until it waits. The activities that it has scheduled inline run concurrently until an outcome would let
// the code continue. Then the decisions and the outcomes are committed as one segment, and the code receives the
// outcomes in the next turn, which is due. The commit sends activities that run too long, or do not start in time, to
// their queues, like any activity.
package inline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// Host holds the options of inline activities, and counts the abandoned ones of the process.
type Host struct {
	*intake.Base

	Registry *registry.Registry
	Encoding *payloads.Encoding
	// Timeout is the maximum duration of an inline activity. Zero or less disables inline activities.
	Timeout time.Duration
	// Interceptors are called around activities.
	Interceptors *body.Chain
	Meter        *intake.Meter // by activity

	abandoned atomic.Int64 // inline activities that were abandoned and still run
}

const (
	// maxAbandoned is the number of abandoned activities at which a process starts no more inline activities.
	maxAbandoned = 3
	// maxActivities is the maximum number of inline activities of a turn. The others are sent to their queues.
	maxActivities = 1000
	// MaxHeldEvents is the maximum number of events of a turn during whose commit inline activities run. The dispatch
	// of a larger turn may have a cursor, which means that all events before the cursor are sent.
	MaxHeldEvents = 500
	// linger is the time for which an outcome waits for other outcomes, so that one commit contains them.
	linger = time.Millisecond
)

// Runner runs the inline activities of a session.
type Runner struct {
	host         *Host
	item         *provider.OrchestrationItem
	queue        *messages.Queue
	limits       limits
	began        time.Time
	alone        bool
	interruption interruption
	set          activities
	// unsent are activities that a commit has left to Send.
	unsent []*activity
}

// Start starts a session of an item, whose messages are in a queue. alone is set if the session runs alone because its
// trigger has crash markers. Such a session starts no inline activities.
func (r *Runner) Start(ctx context.Context, h *Host, item *provider.OrchestrationItem, q *messages.Queue, alone bool) {
	r.host, r.item, r.queue, r.alone = h, item, q, alone
	r.limits, r.began = h.limitsOf(ctx), h.Clock()
}

// Any reports whether the execution has inline activities.
func (r *Runner) Any() bool { return r.set.any() }

// Count returns the number of inline activities of the execution.
func (r *Runner) Count() int { return len(r.set.all) }

// Interrupted reports whether a waiting message requires the invocation to end.
func (r *Runner) Interrupted() bool { return r.interruption.found }

// Started reports whether the session has started an activity, whose code may still run.
func (r *Runner) Started() bool { return r.set.reports.changed != nil }

// Disable prevents the session from starting more activities.
func (r *Runner) Disable() { r.limits = limits{} }

// Run starts the activities that a turn has scheduled, and runs all activities until the commit is due. It returns
// false if the head must be verified first, because an activity of a turn that another process has committed must not
// run.
func (r *Runner) Run(ctx context.Context, x *execution.Execution, events []history.Event) (verified bool, err error) {
	r.set.cancel(events)
	fresh := r.newActivities(x, events) // cancelled activities do not start
	if len(fresh) > 0 && !x.Verified() {
		if current, err := r.verify(ctx, x); !current || err != nil {
			return false, err
		}
	}
	for _, a := range fresh {
		r.set.add(a)
	}
	if r.set.any() {
		r.await(ctx, x, events)
	}
	return true, nil
}

// newActivities returns the activities that a turn has scheduled and that run in this invocation.
func (r *Runner) newActivities(x *execution.Execution, events []history.Event) (fresh []*activity) {
	scheduled := r.scheduledIn(events)
	if len(scheduled) == 0 { // most turns schedule no inline activities
		return nil
	}
	of := &origin{Host: r.host, instanceID: r.item.InstanceID, executionID: x.Head().ExecutionID}
	for _, e := range scheduled {
		code, _ := r.host.Registry.Activity(e.Name)
		fresh = append(fresh, &activity{event: *e, registered: code, origin: of})
	}
	return fresh
}

// Schedules reports whether events schedule activities that run in this invocation.
func (r *Runner) Schedules(events []history.Event) bool { return len(r.scheduledIn(events)) > 0 }

// scheduledIn returns the events that schedule activities which run in this invocation.
func (r *Runner) scheduledIn(events []history.Event) (scheduled []*history.Event) {
	var cancelled map[int64]bool
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.ActivityScheduled && e.Inline:
			if _, ok := r.host.Registry.Activity(e.Name); ok {
				scheduled = append(scheduled, e)
			}
		case e.Kind == history.ActivityCancelRequested && scheduled != nil: // a cancel follows the schedule
			if cancelled == nil {
				cancelled = map[int64]bool{}
			}
			for _, id := range e.Sources() {
				cancelled[id] = true
			}
		case e.Kind.Terminal():
			return nil
		default: // the event schedules nothing
		}
	}
	if len(scheduled) == 0 || !r.mayStart() {
		return nil
	}
	scheduled = slices.DeleteFunc(scheduled, func(e *history.Event) bool { return cancelled[e.ID] })
	return scheduled[:min(len(scheduled), maxActivities)]
}

// mayStart reports whether the session may start inline activities. If a message was delivered before, an activity may
// have crashed its process, or may do so next. The activities go to their queues, where poison is handled for each of
// them and not for the instance (R13).
func (r *Runner) mayStart() bool {
	unacknowledged := r.queue.Unacknowledged()
	redelivered := func(m provider.InboxMessage) bool { return m.Record.ReceiveCount > 1 || m.Redrive != nil }
	now := r.host.Clock()
	return len(unacknowledged) > 0 && !slices.ContainsFunc(unacknowledged, redelivered) && !r.alone &&
		!r.Interrupted() && r.host.abandoned.Load() < maxAbandoned && r.until(now).After(now)
}

// verify checks with strong consistency that the execution is still at the head (R5). The read costs one unit.
func (r *Runner) verify(ctx context.Context, x *execution.Execution) (current bool, err error) {
	next := x.Head().Segment + 1
	later, err := r.host.Provider.ReadSettled(ctx, x.Head().ExecutionID, next)
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case later.Next != next || later.Ended:
		return false, nil
	}
	x.MarkVerified()
	return true, nil
}

// await runs the activities until the code would continue, all have ended, or the commit is due.
func (r *Runner) await(ctx context.Context, x *execution.Execution, events []history.Event) {
	clock, within := r.host.Clock, turnContext(ctx, events)
	r.interruption.begin(clock())
	commitBy := later(r.until(clock()), r.set.all.lastEnd())
	var lingerUntil time.Time // set once the code would continue
	for {
		now := clock()
		r.set.update(now)
		if until := r.until(now); now.Before(commitBy) && now.Before(until) {
			r.set.start(within, until)
		}
		if r.checkInterruption(ctx, now) {
			r.set.stop(now, every)
			r.set.delayReleased(now.Add(interruptionDelay))
		}
		if lingerUntil.IsZero() && x.Code.Wakes(r.set.isDone) {
			lingerUntil = now.Add(linger)
		}
		due := intake.Earlier(commitBy.Add(stopGrace), lingerUntil)
		if !r.set.all.isBusy(now) || !now.Before(due) || ctx.Err() != nil {
			break
		}
		next := intake.Earlier(r.set.all.nextEnd(), r.interruption.nextCheck())
		r.set.reports.wait(ctx, now, intake.Earlier(due, next))
	}
	r.set.stop(clock(), func(a *activity) bool {
		return a.phase == waiting || len(events) > MaxHeldEvents || ctx.Err() != nil
	})
}

func turnContext(ctx context.Context, events []history.Event) context.Context {
	if t := events[0].TraceParent; t != "" {
		return perdure.WithTraceParent(ctx, string(t))
	}
	return ctx
}

// AppendOutcomes appends the outcomes that have arrived to the decisions of a turn, as many as fit into the commit.
func (r *Runner) AppendOutcomes(events []history.Event) []history.Event {
	return r.set.appendOutcomes(events, r.host.Clock())
}

// BeforeCommit marks the activities that the commit sends to their queues in the decisions of a turn, and returns the
// activities that continue in this process. The events after the first decided ones are the outcomes to be committed.
func (r *Runner) BeforeCommit(events []history.Event, decided int) (running map[int64]bool) {
	if len(events) > MaxHeldEvents {
		r.set.releaseUnrecorded(events[decided:])
	}
	return r.set.recordReleases(events[:decided])
}

// Committed applies a committed turn: activities whose outcomes it records have ended. Activities that continue in
// their queues, and that an earlier commit has scheduled, are left to Send.
func (r *Runner) Committed(t *provider.Turn) { r.unsent = r.set.committed(t) }

// Send sends the activities that the last commit has not sent to their queues.
func (r *Runner) Send(ctx context.Context) error {
	unsent := r.unsent
	r.unsent = nil
	return r.send(ctx, unsent)
}

// Drop drops all activities. It reports whether history schedules any of them, so that a redispatch must send them.
func (r *Runner) Drop() (scheduled bool) { return r.set.drop() }

// Release sends all activities to their queues, because no turn of this session takes their outcomes.
func (r *Runner) Release(ctx context.Context) error {
	if !r.set.any() {
		return nil
	}
	r.set.stop(r.host.Clock(), every)
	r.set.releaseUnrecorded(nil)
	return r.send(ctx, r.set.removeReleased())
}

func (r *Runner) send(ctx context.Context, unsent []*activity) error {
	if len(unsent) == 0 {
		return nil
	}
	var out outputs.Set
	for _, a := range unsent {
		out.Add(a.outputs())
	}
	if err := r.host.Provider.PutWorkItems(ctx, out.WorkItems...); err != nil {
		return err
	}
	if len(out.Timers) == 0 {
		return nil
	}
	return r.host.Provider.HoldTimers(ctx, out.Timers...)
}

// Close drops the remaining activities. It waits for code that ignores the end of its context, and then abandons the
// code.
func (r *Runner) Close(ctx context.Context) {
	r.set.drop()
	for _, a := range r.set.awaitDetached(ctx, r.host.Clock) {
		r.host.Meter.Count(intake.MetricActivitiesLeaked, a.event.Name, 1)
		faults.Report(ctx, faults.Event{
			Kind: faults.GoroutineLeak, InstanceID: a.instanceID, Activity: a.event.Name, ActivityID: a.event.ID,
		})
		a.log().WarnContext(ctx, "activity abandoned: it did not return after its context ended",
			"event", logevent.ActivityAbandoned, "inline", true)
	}
}
