package activities

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/heartbeat"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/dispatch/internal/keyorder"
	"github.com/perdure/perdure/dispatch/internal/runlease"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/settlements"
	"github.com/perdure/perdure/provider"
)

// failure is the failure of an activity.
type failure = history.Failure

// task is one delivery of a work item in a worker.
type task struct {
	item  *provider.LockedWorkItem // of the batch
	batch *batch
	index int // in the batch

	// cancelRead and settledRead are shared with tasks of the same execution in the batch. cancelsFrom is the first
	// segment of the cancel record that the task has not read.
	cancelRead  *provider.CancelRead
	settledRead *settlements.SharedRead
	cancelsFrom int64

	// pollInterval is the interval of cancel polls while the code runs.
	pollInterval time.Duration

	key     keyorder.Place
	crashes isolation.State
	earlier earlierRuns
	tokens  provider.CompletionSigner // signs the completion token on demand

	// The supervisor's lock guards the following fields until the activity has ended.
	phase      phase
	startedAt  time.Time
	cancel     context.CancelCauseFunc
	stop       stopState
	lease      lease
	run        *runlease.Lease  // nil until it is acquired; only for WaitForCancellation and AtMostOnce
	heartbeats *heartbeat.State // nil until there is a heartbeat, or details of an earlier one

	// timedOut is true if a timeout has expired and the code may still run. mayStillRun is true if the delivery has
	// ended, for any reason, and the code may still run.
	timedOut, mayStillRun bool
}

// phase is the progress of a task.
type phase int

const (
	phaseWaiting phase = iota // the code has not started
	phaseRunning
	phaseEnded   // the code has returned or was abandoned, and the result is being sent
	phaseSettled // the record is deleted, released or lost
)

// earlierRuns describes earlier attempts and deliveries of a task's activity, as far as the task has read them.
type earlierRuns struct {
	// end is history.OutcomeAbandoned if one of them was abandoned, so that its code may still run.
	end string
	// invocationTimeouts counts the consecutive deliveries of the attempt that exceeded their invocation without
	// progress.
	invocationTimeouts int
}

// ended records how an earlier attempt ended. An empty end does not replace a known one.
func (e *earlierRuns) ended(end string) { e.end = cmp.Or(end, e.end) }

func (t *task) finish(r result) { t.batch.results.Add(finishedTask{t, r}) }

// sentAt returns when the attempt was sent, or became due if that is later. It is zero if unknown.
func (t *task) sentAt() time.Time {
	sent := t.item.Record.SentAt
	if due := t.item.NotBefore; due != nil && due.After(sent) {
		return *due
	}
	return sent
}

// WorkItem returns the work item of the task.
func (t *task) WorkItem() *provider.LockedWorkItem { return t.item }

func (t *task) hasStarted() bool { return !t.startedAt.IsZero() }

// Log returns the logger of the task.
func (t *task) Log() *slog.Logger {
	it := t.item
	return t.batch.worker.options.Logger.With("activity", it.Name, "instance", it.InstanceID,
		"execution", it.ExecutionID, "activityId", it.ActivityID, "attempt", it.Attempt)
}

func withTrace(ctx context.Context, it *provider.LockedWorkItem) context.Context {
	if trace := it.TraceParent; trace != "" {
		return perdure.WithTraceParent(ctx, string(trace))
	}
	return ctx
}

// activityHandle implements activityctx.Activity.
type activityHandle struct{ task *task }

// Info implements activityctx.Activity.
func (h activityHandle) Info() activityctx.Info {
	it := h.task.item
	return activityctx.Info{
		InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Name: it.Name,
		Attempt: it.Attempt, DeliveryCount: it.Record.ReceiveCount, Queue: it.Queue,
	}
}

// Token implements activityctx.Activity.
func (h activityHandle) Token() string { return h.task.tokens.SignCompletion(&h.task.item.WorkItem) }

// TakesLargePayloads implements activityctx.Activity.
func (h activityHandle) TakesLargePayloads() bool { return h.task.batch.worker.payloads.HasStore() }
