package work

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/provider"
)

// task is one delivery of a work item in the hands of a worker, and how far it has come. Each of its parts is changed by the functions
// of one file.
type task struct {
	item  *provider.LockedWorkItem // the batch's
	batch *batch
	index int // in the batch

	// cancels and looks are reads that it shares with others of its execution in the batch; unread is the segment from which on it has
	// not read the cancel record.
	cancels *provider.CancelRead
	looks   *look
	unread  int64

	// pollEvery is how often the cancel record is polled while it runs.
	pollEvery time.Duration

	place     place
	suspicion suspicion
	past      past
	tokens    *provider.TokenSigner // make the token by which it may be completed from outside

	// The manager's lock guards what follows, until the activity has ended.
	phase  phase
	began  time.Time
	cancel context.CancelCauseFunc
	stop   stopping
	lease  lease
	run    *heldRun    // nil until it is taken; only an activity that is waited for when it is cancelled, or runs at most once, has one
	beats  *heartbeats // nil until it has one, or something is to be known of them

	// abandoned: its time was over, and its code may still run. leaked: its delivery is over, for whatever reason, and its code may
	// still run.
	abandoned, leaked bool
}

// past is what earlier attempts and deliveries of an activity have left.
type past struct {
	// end is history.OutcomeAbandoned when one of them was given up, so that its code may still run.
	end string
	// runOuts counts how often in a row the attempt has run into the end of an invocation without progress.
	runOuts int
}

// ended notes how an earlier attempt ended, if that is known. What one delivery has learned another does not take back.
func (p *past) ended(how string) { p.end = cmp.Or(how, p.end) }

// givenUp notes that an earlier delivery was given up.
func (p *past) givenUp() { p.end = history.OutcomeAbandoned }

// phase is how far a task has come.
type phase int

const (
	phaseWaiting phase = iota // its code has not begun
	phaseRunning
	phaseEnded // its code has returned or was given up, and its result is being sent
	phaseGone  // its record is deleted, given back or lost
)

// result is what became of a work item: an outcome to send, nothing to send, or nothing done, so that it goes back to its queue.
type result struct {
	outcome *provider.ActivityOutcome
	back    bool
}

// finished is a task with its result.
type finished struct {
	task *task
	result
}

// end is how a cancelled activity ended that came to an end by itself.
func (r result) end() provider.CancelOutcome {
	if r.outcome != nil && r.outcome.Error == nil {
		return provider.OutcomeCompleted
	}
	return provider.OutcomeStopped
}

// resultOf is the result to send of a task whose code ended with r or was given up. A worker that cannot go on with an activity gives it
// back: another can.
func (t *task) resultOf(r result) result {
	switch {
	case t.stop.lost:
		return result{back: true}
	case !t.stop.isOfWorker():
		return r
	case !t.item.AtMostOnce || r.outcome == nil:
		return result{back: true}
	case r.outcome.Error == nil: // in time, after all
		return r
	default:
		return *t.interrupted(r.outcome.Error)
	}
}

// onlyOfWorkers reports whether a reason concerns the worker alone: whatever its activity returns then is no success, and another worker
// can go on with it.
func onlyOfWorkers(r perdure.CancelReason) bool {
	return r == perdure.ReasonLockLost || r == perdure.ReasonInvocationDeadline || r == perdure.ReasonShutdown
}

// sentAt is when the attempt was sent, or is due where that is later; zero where it is not known.
func (t *task) sentAt() time.Time {
	sent := t.item.Record.SentAt
	if due := t.item.NotBefore; due != nil && due.After(sent) {
		return *due
	}
	return sent
}

// log is the logger for what concerns one task.
func (t *task) log() *slog.Logger {
	it := t.item
	return t.batch.worker.options.Logger.With("activity", it.Name, "instance", it.InstanceID, "execution", it.ExecutionID,
		"activityId", it.ActivityID, "attempt", it.Attempt)
}

// withInfo is ctx for what is done for an activity.
func withInfo(ctx context.Context, t *task) context.Context {
	return activityctx.For(traced(ctx, t), atWork{t})
}

// forCode is ctx for the code of an activity, which alone is given the token.
func forCode(ctx context.Context, t *task) context.Context {
	return activityctx.ForCode(traced(ctx, t), atWork{t})
}

func traced(ctx context.Context, t *task) context.Context {
	if trace := t.item.TraceParent; trace != "" {
		return perdure.WithTraceParent(ctx, string(trace))
	}
	return ctx
}

// atWork implements activityctx.Activity for a task.
type atWork struct{ task *task }

// Info implements activityctx.Activity.
func (a atWork) Info() activityctx.Info {
	it := a.task.item
	return activityctx.Info{
		InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Name: it.Name,
		Attempt: it.Attempt, DeliveryCount: it.Record.ReceiveCount, Queue: it.Queue,
	}
}

// Token implements activityctx.Activity.
func (a atWork) Token() string { return a.task.tokens.SignCompletion(&a.task.item.WorkItem) }

// TakesLargePayloads implements activityctx.Activity.
func (a atWork) TakesLargePayloads() bool { return a.task.batch.worker.vault.Stores() }
