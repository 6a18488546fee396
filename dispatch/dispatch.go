package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/activities"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/poll"
	"github.com/perdure/perdure/dispatch/internal/sweeper"
	"github.com/perdure/perdure/dispatch/internal/timers"
	"github.com/perdure/perdure/dispatch/internal/turns"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Orchestrator runs turns. It is safe for concurrent use. Create one per process, because it caches warm instances.
type Orchestrator struct{ turns *turns.Orchestrator }

// NewOrchestrator returns an orchestrator for the code in r and the hub of p. Both are required. If opts is nil, the
// defaults apply. It makes no calls. It returns an error if an option is invalid.
func NewOrchestrator(r *perdure.Registry, p provider.Provider, opts *OrchestratorOptions) (*Orchestrator, error) {
	if err := required("orchestrator", r, p); err != nil {
		return nil, err
	}
	o := orDefault(opts)
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Orchestrator{turns.NewOrchestrator((*registry.Registry)(r), p, turns.Options(o))}, nil
}

// ReportBuild reports the orchestrations and activities of this build to the hub, so that clients can start them by
// name. Call it once per process.
func (o *Orchestrator) ReportBuild(ctx context.Context) error { return o.turns.ReportBuild(ctx) }

// HandleRecords runs the turns for a batch of inbox records, with different instances in parallel, and returns the IDs
// of the records that failed. If a record of an instance fails, all later records of the instance fail too (R2).
// Instances with a crash marker run last, one after another. If no time is left for them, their records are released to
// the inbox (R13).
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return o.turns.HandleRecords(ctx, records)
}

// QueryInstance runs a query handler (perdure.SetQueryHandler) on the committed history of an instance and returns its
// result. The instance can have any status. QueryInstance replays the code, writes and sends nothing and takes no lock.
// It is not a turn, so it does not appear in metrics or interceptors. It implements provider.Querier.
//
// The replay and the handler each have a time limit: OrchestratorOptions.TurnTimeout, and at most half of the time
// until ctx ends. QueryInstance does not run the code of an instance that is blocked as poison.
//
// Up to four queries run concurrently. Other queries wait until one of them returns or ctx ends. A handler with three
// calls that have not returned is not called until one of them returns.
func (o *Orchestrator) QueryInstance(ctx context.Context, q provider.QueryRequest) (result json.RawMessage, err error) {
	return o.turns.QueryInstance(ctx, &q)
}

// Close ends the cached orchestrations. Do not call HandleRecords after it.
func (o *Orchestrator) Close() { o.turns.Close() }

// Worker runs activities. It is safe for concurrent use. Create one per process and queue, so that it can share its
// reads of the hub.
type Worker struct{ activities *activities.Worker }

// NewWorker returns a worker for the activities in r and one work queue of the hub of p. Both are required. If opts is
// nil, the defaults apply. It makes no calls. It returns an error if an option is invalid.
//
// An activity of a pushed record that runs for longer than WorkerOptions.LeaseAfter gets a lease
// (WorkerOptions.LockTimeout).
func NewWorker(r *perdure.Registry, p provider.Provider, opts *WorkerOptions) (*Worker, error) {
	if err := required("worker", r, p); err != nil {
		return nil, err
	}
	o := orDefault(opts)
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Worker{activities.NewWorker((*registry.Registry)(r), p, activities.Options(o))}, nil
}

// ReportStart reports to the hub that a worker of WorkerOptions.Queue has started. Call it once per process. The worker
// then reports about every five minutes while it works. Activities run without it, so only log the error.
func (w *Worker) ReportStart(ctx context.Context) error { return w.activities.ReportStart(ctx) }

// HandleRecords runs the activities of a batch in parallel and returns the IDs of the records that failed. It sends
// each outcome as soon as it is available, and then deletes the record (R14). The caller deletes the last record of the
// batch if it did not fail, as an event source mapping of Lambda does. Failed records can be redelivered while others
// of the batch are still running.
//
// Activities that are cancelled before they start are not run. The context of a running activity ends when the activity
// is cancelled, its lock is lost, ctx is near its deadline, or ctx ends. The cause is a *perdure.CancelledError.
// HandleRecords then waits for the activity for up to WorkerOptions.CancellationGracePeriod.
//
// Activities with a crash marker run last, one after another. If no time is left for them, their records are released
// to the queue (R13).
//
// Records of one message group, such as those of an exclusive key (perdure.Exclusive), run one after another. If one
// fails, all later records of its group fail (R29).
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return w.activities.HandleRecords(ctx, records)
}

// RenewRecords extends the locks of received records that HandleRecords is processing, like
// provider.Poller.RenewRecords. Use it as PollOptions.Renew. Each renewal also reads whether the activity is
// cancelled, and ends its context if it is.
func (w *Worker) RenewRecords(
	ctx context.Context, lock time.Duration, records ...provider.Record,
) (lost []provider.Record, err error) {
	return w.activities.RenewRecords(ctx, lock, records...)
}

// AbandonedActivities returns the number of activities that were abandoned so far because they did not return within
// the grace period.
func (w *Worker) AbandonedActivities() int64 { return w.activities.AbandonedActivities() }

// Renewer processes the timers queue and runs the sweeper. It is safe for concurrent use.
type Renewer struct {
	timers  timers.Handler
	sweeper *sweeper.Sweeper
}

// NewRenewer returns a renewer for the hub of p, which is required. If opts is nil, the defaults apply. It makes no
// calls. It returns an error if an option is invalid.
func NewRenewer(p provider.Provider, opts *RenewerOptions) (*Renewer, error) {
	if p == nil {
		return nil, fmt.Errorf("dispatch: provider of the renewer: %w", errNil)
	}
	o := orDefault(opts)
	if err := known("RenewerOptions", o.Metrics); err != nil {
		return nil, err
	}
	base := intake.NewBase(p, o.Clock, o.Logger)
	return &Renewer{timers: timers.Handler{Base: base}, sweeper: sweeper.New(base, o.HubName, o.Metrics)}, nil
}

// HandleRecords fires due timers, waits for timers that are nearly due, and holds the others. It returns the IDs of the
// records that failed.
func (k *Renewer) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return k.timers.HandleRecords(ctx, records)
}

// Sweep runs the sweeper once and returns the number of instances that it woke. It wakes instances that were started
// without a wake or were blocked in an earlier build. It continues deletions and bulk jobs, and applies retention. It
// recovers records that queues moved to their dead-letter queues. Call it every few minutes. Concurrent calls are
// allowed.
//
// Sweep runs for at most a minute, or until ctx ends. The next call continues with the rest, and that is not an error.
// The error joins the errors of the duties that failed. The other duties are done.
func (k *Renewer) Sweep(ctx context.Context) (woken int, err error) { return k.sweeper.Sweep(ctx) }

// Poll processes a queue until ctx ends. It receives records, passes them to handle (the HandleRecords method of an
// Orchestrator, Worker or Renewer) and deletes those that did not fail. It renews the locks of records while handle
// runs. An outcome is not sent if the lock of its record is lost (provider.LockHold).
//
// If a receive fails, Poll logs the error and retries after 1 to 30 seconds. When ctx ends, Poll receives no more
// records and waits for running calls for up to PollOptions.GracePeriod. It then releases the remaining records to the
// queue, ends their contexts and waits for up to PollOptions.UnwindTimeout. It returns an error with the number of
// released records, or nil if there were none.
//
// p, queue and handle are required. Poll returns an error if one is missing or an option is invalid.
func Poll(
	ctx context.Context, p provider.Poller, queue string,
	handle func(ctx context.Context, records []provider.Record) (failed []string), opts PollOptions,
) error {
	if err := opts.check(); err != nil {
		return err
	}
	switch {
	case p == nil:
		return fmt.Errorf("dispatch: provider of Poll: %w", errNil)
	case queue == "":
		return errors.New("dispatch: queue of Poll must not be empty")
	case handle == nil:
		return fmt.Errorf("dispatch: handle of queue %q: %w", queue, errNil)
	}
	return poll.Poll(ctx, p, queue, handle, poll.Options(opts))
}
