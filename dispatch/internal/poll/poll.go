// Package poll processes a queue of a hub in a process outside Lambda.
package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// RenewFunc renews the locks of records and returns the records whose locks are lost. It is the type of
// dispatch.PollOptions.Renew.
type RenewFunc = func(
	ctx context.Context, lock time.Duration, records ...provider.Record,
) (lost []provider.Record, err error)

// HandleFunc handles records and returns the IDs of the failed ones.
type HandleFunc = func(ctx context.Context, records []provider.Record) (failed []string)

// Options holds the options of Poll. See dispatch.PollOptions.
type Options struct {
	Concurrency   int
	LockTimeout   time.Duration
	GracePeriod   time.Duration
	UnwindTimeout time.Duration
	Renew         RenewFunc
	Logger        *slog.Logger
}

const (
	defaultConcurrency = 4
	defaultGrace       = 30 * time.Second
	// Longer than the grace period of a Worker, so that the Worker can report abandoned activities.
	defaultUnwind = intake.DefaultGrace + 2*time.Second
	// defaultLock is the lock of records whose lock is not known.
	defaultLock = 30 * time.Second
	// The pauses after a failed receive.
	minReceivePause = time.Second
	maxReceivePause = 30 * time.Second
)

func (o Options) withDefaults(queue string) Options {
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
		if queue == provider.QueueTimers {
			o.Concurrency = 1
		}
	}
	if o.GracePeriod == 0 {
		o.GracePeriod = defaultGrace
	}
	if o.UnwindTimeout == 0 {
		o.UnwindTimeout = defaultUnwind
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// errStopped is the cause of contexts that end after the grace period.
var errStopped = errors.New("dispatch: process is stopping")

// Poll implements dispatch.Poll.
func Poll(ctx context.Context, p provider.Poller, queue string, handle HandleFunc, opts Options) error {
	q := &poller{p: p, queue: queue, handle: handle, options: opts.withDefaults(queue), batches: map[*batch]bool{}}
	if q.options.Renew == nil {
		q.options.Renew = func(
			ctx context.Context, lock time.Duration, records ...provider.Record,
		) ([]provider.Record, error) {
			return p.RenewRecords(ctx, queue, lock, records...)
		}
	}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var loops sync.WaitGroup
	for range q.options.Concurrency {
		loops.Go(func() { q.loop(ctx, work) })
	}
	finished := make(chan struct{})
	go func() {
		loops.Wait()
		close(finished)
	}()
	<-ctx.Done()
	if within(q.options.GracePeriod, finished) {
		return nil
	}
	// a released record can run elsewhere, so its code must end here first
	if _, exclusive := history.BaseQueue(queue); exclusive {
		stop(errStopped)
		within(q.options.UnwindTimeout, finished)
	}
	remaining := q.releaseAll(work)
	stop(errStopped)
	within(q.options.UnwindTimeout, finished)
	if remaining == 0 {
		return nil
	}
	return fmt.Errorf("dispatch: queue %q: %d records were not processed within the grace period of %v "+
		"and were released", queue, remaining, q.options.GracePeriod)
}

// within waits for at most d, and reports whether the event occurred.
func within(d time.Duration, arrived <-chan struct{}) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-arrived:
		return true
	case <-t.C:
		return false
	}
}

// poller is the state that the loops of a Poll share.
type poller struct {
	p       provider.Poller
	queue   string
	handle  HandleFunc
	options Options

	mu      sync.Mutex
	batches map[*batch]bool // the batches that are being handled
}

// batch holds the records of one receive.
type batch struct{ records []provider.Record }

// unfinished returns the records that are not deleted, released or lost.
func (b *batch) unfinished() []provider.Record {
	var rest []provider.Record
	for i := range b.records {
		if h := b.records[i].Hold; h == nil || !h.Ended() {
			rest = append(rest, b.records[i])
		}
	}
	return rest
}

// loop receives records until ctx ends. Handlers use the context work, which ends later.
func (q *poller) loop(ctx, work context.Context) {
	pause := minReceivePause
	for ctx.Err() == nil {
		records, err := q.p.FetchRecords(ctx, q.queue)
		if err != nil {
			if ctx.Err() == nil {
				q.options.Logger.ErrorContext(ctx, "receive failed, retrying", "event", logevent.ReceiveFailed,
					"queue", q.queue, "after", pause, "error", err)
				_ = sleep.For(ctx, pause) // the loop checks ctx
				pause = min(2*pause, maxReceivePause)
			}
			continue
		}
		pause = minReceivePause
		if len(records) > 0 {
			q.serve(work, records)
		}
	}
}

// serve calls the handler and then deletes the records that did not fail, like an event source mapping.
func (q *poller) serve(ctx context.Context, records []provider.Record) {
	b := &batch{records}
	q.mu.Lock()
	q.batches[b] = true
	q.mu.Unlock()
	release := q.renew(ctx, b)
	failed := q.handle(ctx, slices.Clone(records))
	release()
	q.mu.Lock()
	delete(q.batches, b)
	q.mu.Unlock()
	done := slices.DeleteFunc(b.unfinished(), func(r provider.Record) bool { return slices.Contains(failed, r.ID) })
	if len(done) == 0 {
		return
	}
	if err := q.p.DeleteRecords(ctx, q.queue, done...); err != nil {
		q.options.Logger.WarnContext(ctx, "record deletion failed, finished records will be redelivered",
			"event", logevent.RecordDeleteFailed, "queue", q.queue, "records", len(done), "error", err)
	}
}

// renew renews the locks of a batch until release is called.
func (q *poller) renew(ctx context.Context, b *batch) (release func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lock := q.lock(b)
		pause := lock / intake.Renewals
		for {
			_ = sleep.For(ctx, pause) // the loop checks ctx
			rest := b.unfinished()
			if ctx.Err() != nil || len(rest) == 0 {
				return
			}
			pause = lock / intake.Renewals
			if !q.renewOnce(ctx, lock, rest) {
				pause = lock / intake.RenewalTries
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

func (q *poller) lock(b *batch) time.Duration {
	if q.options.LockTimeout > 0 {
		return q.options.LockTimeout
	}
	if h := b.records[0].Hold; h != nil {
		return h.Length()
	}
	return defaultLock
}

func (q *poller) renewOnce(ctx context.Context, lock time.Duration, records []provider.Record) (renewed bool) {
	lost, err := q.options.Renew(ctx, lock, records...)
	for i := range lost {
		q.options.Logger.ErrorContext(ctx, "record lock lost, ignoring its result", "event", logevent.RecordLockLost,
			"queue", q.queue, "record", lost[i].ID)
	}
	if err != nil && ctx.Err() == nil {
		q.options.Logger.WarnContext(ctx, "lock renewal failed, retrying", "event", logevent.RecordLockRenewalFailed,
			"queue", q.queue, "records", len(records), "error", err)
	}
	return err == nil
}

// releaseDelay returns the delay of a record that is released because its process stops. Another process may receive
// the record immediately after its first deliveries. The delay then grows, so that processes that stop repeatedly do
// not use up its deliveries.
func releaseDelay(r *provider.Record) time.Duration {
	if r.ReceiveCount <= intake.DeliveriesTogether {
		return 0
	}
	return intake.RetryDelay(r.ReceiveCount)
}

// releaseAll releases the records that are being handled, and ends their holds before their contexts end. No outcome is
// sent for them, in particular not the failure of an activity whose context has ended.
func (q *poller) releaseAll(ctx context.Context) int {
	var left []provider.Record
	q.mu.Lock()
	for b := range q.batches {
		left = append(left, b.unfinished()...)
	}
	q.mu.Unlock()
	if len(left) == 0 {
		return 0
	}
	for delay, records := range intake.ByDelay(left, releaseDelay) {
		if err := q.p.AbandonRecords(ctx, q.queue, delay, records...); err != nil {
			q.options.Logger.WarnContext(ctx, "record release failed, redelivery is delayed",
				"event", logevent.RecordReleaseFailed, "queue", q.queue, "error", err)
		}
	}
	for i := range left {
		left[i].EndHold()
	}
	return len(left)
}
