package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/poll"
	"github.com/perdure/perdure/dispatch/internal/timers"
	"github.com/perdure/perdure/dispatch/internal/turns"
	"github.com/perdure/perdure/dispatch/internal/work"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Orchestrator runs turns. It is safe for concurrent use; a process has one, so that warm orchestrations are found again.
type Orchestrator struct{ turns *turns.Orchestrator }

// NewOrchestrator makes an orchestrator of the code in r, for the hub of p. Both are required; nil options are the defaults. It calls nothing.
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

// Announce makes known to the hub what this build can run, so that clients may start it by name. Once a process is enough.
func (o *Orchestrator) Announce(ctx context.Context) error { return o.turns.Announce(ctx) }

// HandleRecords runs the turns that a batch of inbox records asks for, instances side by side, and returns the ids of the
// records that failed: of each instance's a suffix, since failing one message fails all later ones of its group (R2). The instances
// on whose message a mark stands come last, one after the other, and go back to the inbox where there is no time left (R13).
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return o.turns.HandleRecords(ctx, records)
}

// Ask has the code of an instance answer a query (perdure.SetQueryHandler), from where its committed history has brought it to: it is replayed
// for that, whether it runs, is paused, is blocked or is over. It writes and sends nothing, takes no lock, and is no turn: neither metrics
// nor interceptors know of it. It is provider.Asker's.
//
// It takes what a cold turn takes. The replay and the handler have OrchestratorOptions.TurnLimit each, and no longer than half of what ctx has. The
// code of an instance that is blocked as poison is not run.
//
// Four are answered at once; others wait until ctx ends. A handler of which three calls have not come back is not called until one has.
func (o *Orchestrator) Ask(ctx context.Context, q provider.Question) (answer json.RawMessage, err error) {
	return turns.Ask(ctx, o.turns, q)
}

// Close unwinds the orchestrations that are kept warm. Records must not be handled any more.
func (o *Orchestrator) Close() { o.turns.Close() }

// Worker runs activities. It is safe for concurrent use; a process has one for each queue, so that what it asks of the hub
// while activities run is asked once.
type Worker struct{ work *work.Worker }

// NewWorker makes a worker of the activities in r, for a work queue of the hub of p. Both are required; nil options are the defaults. It calls
// nothing.
//
// An activity of a record that was pushed, and that takes longer than a moment, is leased: see WorkerOptions.LockTimeout.
func NewWorker(r *perdure.Registry, p provider.Provider, opts *WorkerOptions) (*Worker, error) {
	if err := required("worker", r, p); err != nil {
		return nil, err
	}
	o := orDefault(opts)
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Worker{work.NewWorker((*registry.Registry)(r), p, work.Options(o))}, nil
}

// Announce reports to the hub that a worker of WorkerOptions.Queue has started. Once a process is enough: from then on the worker reports
// about every five minutes that it is at work. Activities do not need it, so the error is for the log.
func (w *Worker) Announce(ctx context.Context) error { return w.work.Announce(ctx) }

// HandleRecords runs the activities of a batch side by side, sends each outcome as soon as it is there and deletes the record
// then (R14), but for the last of the batch: the caller deletes what has not failed when HandleRecords returns, as a mapping of Lambda does. It
// returns the ids of the records that failed: their activities are tried again, and may be while the others of the batch still run.
//
// Activities that are cancelled before they begin are not run. The contexts of those that run end with a
// *perdure.CancelledError as their cause when they are cancelled, their lock is lost, ctx's deadline is near or ctx ends.
// HandleRecords waits for them for WorkerOptions.CancellationGracePeriod then, and no longer.
//
// Those on which a mark stands come last, one after the other, and go back to the queue where there is no time left (R13).
//
// Records of one message group, as those of an exclusive key are (perdure.Exclusive), run one after the other. Where one fails, all later ones of its
// group do (R29).
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return w.work.HandleRecords(ctx, records)
}

// RenewRecords extends the locks of records that HandleRecords was given and that were fetched, as provider.Polling does it (see there for
// lock, lost and err): it is for PollOptions.Renew. Each renewal answers whether the activity is cancelled, and is as good as a poll: the
// context of one that runs ends.
func (w *Worker) RenewRecords(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	return w.work.RenewRecords(ctx, lock, records...)
}

// Leaked is how many activities were given up so far, because they did not return within the grace after their context ended.
func (w *Worker) Leaked() int64 { return w.work.Leaked() }

// Timekeeper serves the timers queue, and keeps watch over instances that got stuck. It is safe for concurrent use.
type Timekeeper struct{ timers *timers.Timekeeper }

// NewTimekeeper makes a timekeeper for the hub of p, which is required; nil options are the defaults. It calls nothing.
func NewTimekeeper(p provider.Provider, opts *TimekeeperOptions) (*Timekeeper, error) {
	if p == nil {
		return nil, fmt.Errorf("dispatch: a timekeeper needs a provider: %w", errNil)
	}
	o := orDefault(opts)
	if err := known("TimekeeperOptions", o.Metrics); err != nil {
		return nil, err
	}
	return &Timekeeper{timers.NewTimekeeper(p, timers.Options(o))}, nil
}

// HandleRecords fires the timers that are due, waits for those that nearly are, and has the others held meanwhile. It returns
// the ids of the records that failed.
func (k *Timekeeper) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	return k.timers.HandleRecords(ctx, records)
}

// Watch wakes instances that were started and never picked up, since their client died between the transaction and the wake, and
// those that were blocked in an earlier build; it finishes deletions that were begun and left, and picks up what queues have moved to
// their dead letters, and deletes what need not be kept any longer. It is to be called every few minutes; two at once do no harm. It returns how many instances it has woken. What it has
// no time for before ctx ends, or within a minute, is left to the next call, which goes on there, and is no error. An error says what
// failed, and of which duty; the rest was done all the same.
func (k *Timekeeper) Watch(ctx context.Context) (woken int, err error) { return k.timers.Watch(ctx) }

// Poll serves a queue until ctx ends: it fetches records, gives them to handle (an Orchestrator's, a Worker's or a
// Timekeeper's HandleRecords) and deletes those that did not fail. While handle works, the locks of its unfinished records
// are renewed. An orchestrator's outcome or an activity's is not sent once its record's lock is lost: see provider.Hold.
//
// A fetch that fails is logged and tried again, after 1 second and up to 30. When ctx ends nothing more is fetched, and what
// is being handled goes on for up to PollOptions.Grace. What is then left goes back to the queue, its contexts end, and Poll returns, after
// up to PollOptions.Unwind more, an error that says how much it was. Otherwise it returns nil.
//
// p, queue and handle are required: what is missing is an error, and so are options that cannot be.
func Poll(ctx context.Context, p provider.Polling, queue string, handle func(ctx context.Context, records []provider.Record) (failed []string), opts PollOptions) error {
	if err := opts.check(); err != nil {
		return err
	}
	switch {
	case p == nil:
		return fmt.Errorf("dispatch: the provider of the poll: %w", errNil)
	case queue == "":
		return errors.New("dispatch: the queue of the poll has no name")
	case handle == nil:
		return fmt.Errorf("dispatch: the handle of queue %q: %w", queue, errNil)
	}
	return poll.Poll(ctx, p, queue, handle, poll.Options(opts))
}
