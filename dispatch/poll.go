package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// PollOptions says how a queue is polled. The zero value will do.
type PollOptions struct {
	// Loops is how many batches are handled side by side. Default 4, of the timers queue 1.
	Loops int
	// Lock is how long each renewal locks a record for. Default: for as long as the queue did.
	Lock time.Duration
	// Grace is how long Poll waits, once its context has ended, for what is being handled. Default 30 s; negative: not at all.
	Grace time.Duration
	// Unwind is how long Poll then waits, once it has ended the contexts of what is left, for it to heed that. A Worker waits
	// for its activities for as long as its CancellationGracePeriod. Default 12 s; negative: not at all.
	Unwind time.Duration
	// Renew extends the locks of records that are being handled, as provider.Polling's RenewRecords does, which is the default. Of a work
	// queue it is the Worker's: each renewal of a work item answers whether its activity is cancelled.
	Renew func(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error)
	// Logger is where Poll logs. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultLoops = 4
	defaultGrace = 30 * time.Second
	// Longer than a Worker's default: it is to tell what leaked.
	defaultUnwind = defaultCancellationGrace + 2*time.Second
	// defaultLock is for records that do not say how long they are locked.
	defaultLock = 30 * time.Second
	// A fetch that failed is tried again after these.
	firstFetchPause   = time.Second
	longestFetchPause = 30 * time.Second
	// A renewal comes every third of the lock, and one that failed is tried again after a tenth.
	renewals, renewalTries = 3, 10
)

func (o PollOptions) withDefaults(queue string) PollOptions {
	if o.Loops <= 0 {
		o.Loops = defaultLoops
		if queue == provider.QueueTimers {
			o.Loops = 1
		}
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Unwind == 0 {
		o.Unwind = defaultUnwind
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// errStopped is the cause that the contexts of what outlives the grace end with.
var errStopped = errors.New("dispatch: the process is being stopped")

// Poll serves a queue until ctx ends: it fetches records, gives them to handle (an Orchestrator's, a Worker's or a
// Timekeeper's HandleRecords) and deletes those that did not fail. While handle works, the locks of its unfinished records
// are renewed. An orchestrator's outcome or an activity's is not sent once its record's lock is lost: see provider.Hold.
//
// A fetch that fails is logged and tried again, after 1 second and up to 30. When ctx ends nothing more is fetched, and what
// is being handled goes on for up to Grace. What is then left goes back to the queue, its contexts end, and Poll returns, after
// up to Unwind more, an error that says how much it was. Otherwise it returns nil.
func Poll(ctx context.Context, p provider.Polling, queue string, handle func(ctx context.Context, records []provider.Record) (failed []string), opts PollOptions) error {
	q := &poller{p: p, queue: queue, handle: handle, options: opts.withDefaults(queue), batches: map[*batch]bool{}}
	if q.options.Renew == nil {
		q.options.Renew = func(ctx context.Context, lock time.Duration, records ...provider.Record) ([]provider.Record, error) {
			return p.RenewRecords(ctx, queue, lock, records...)
		}
	}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var loops sync.WaitGroup
	for range q.options.Loops {
		loops.Go(func() { q.loop(ctx, work) })
	}
	finished := make(chan struct{})
	go func() {
		loops.Wait()
		close(finished)
	}()
	<-ctx.Done()
	if within(q.options.Grace, finished) {
		return nil
	}
	left := q.giveBack(work)
	stop(errStopped)
	within(q.options.Unwind, finished)
	if left == 0 {
		return nil
	}
	return fmt.Errorf("dispatch: queue %q: %d records were not finished within %v of the end, and went back", queue, left, q.options.Grace)
}

// within waits for something for so long, and reports whether it came.
func within(d time.Duration, came <-chan struct{}) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-came:
		return true
	case <-t.C:
		return false
	}
}

// poller is what the loops of a Poll share.
type poller struct {
	p       provider.Polling
	queue   string
	handle  func(ctx context.Context, records []provider.Record) (failed []string)
	options PollOptions

	mu      sync.Mutex
	batches map[*batch]bool // those being handled
}

// batch is the records of one fetch.
type batch struct{ records []provider.Record }

// unfinished are those that are neither deleted, given back nor lost.
func (b *batch) unfinished() []provider.Record {
	var rest []provider.Record
	for i := range b.records {
		if h := b.records[i].Hold; h == nil || !h.Ended() {
			rest = append(rest, b.records[i])
		}
	}
	return rest
}

// loop fetches until ctx ends. What it handles is bound to work, which lasts longer.
func (q *poller) loop(ctx, work context.Context) {
	pause := firstFetchPause
	for ctx.Err() == nil {
		records, err := q.p.FetchRecords(ctx, q.queue)
		if err != nil {
			if ctx.Err() == nil {
				q.options.Logger.ErrorContext(ctx, "records could not be fetched, it is tried again", "queue", q.queue, "after", pause, "error", err)
				wait(ctx, pause)
				pause = min(2*pause, longestFetchPause)
			}
			continue
		}
		pause = firstFetchPause
		if len(records) > 0 {
			q.serve(work, records)
		}
	}
}

// serve is the one path: handle, as a function would, then delete, as its mapping would.
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
		q.options.Logger.WarnContext(ctx, "finished records were not deleted, they will be delivered again", "queue", q.queue, "records", len(done), "error", err)
	}
}

// renew keeps the locks of a batch until it is released.
func (q *poller) renew(ctx context.Context, b *batch) (release func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lock := q.lock(b)
		pause := lock / renewals
		for {
			wait(ctx, pause)
			rest := b.unfinished()
			if ctx.Err() != nil || len(rest) == 0 {
				return
			}
			pause = lock / renewals
			if !q.renewOnce(ctx, lock, rest) {
				pause = lock / renewalTries
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

func (q *poller) lock(b *batch) time.Duration {
	if q.options.Lock > 0 {
		return q.options.Lock
	}
	if h := b.records[0].Hold; h != nil {
		return h.Length()
	}
	return defaultLock
}

func (q *poller) renewOnce(ctx context.Context, lock time.Duration, records []provider.Record) (renewed bool) {
	lost, err := q.options.Renew(ctx, lock, records...)
	for i := range lost {
		q.options.Logger.ErrorContext(ctx, "the lock of a record is lost: what comes of it is not sent", "queue", q.queue, "record", lost[i].ID)
	}
	if err != nil && ctx.Err() == nil {
		q.options.Logger.WarnContext(ctx, "locks could not be renewed, it is tried again", "queue", q.queue, "records", len(records), "error", err)
	}
	return err == nil
}

// stoppedDelay is how long a record stays invisible whose process is stopped. Another may have it at once; but where processes are
// stopped again and again, none of its deliveries is spent for nothing.
func stoppedDelay(r *provider.Record) time.Duration {
	if r.ReceiveCount <= deliveriesTogether {
		return 0
	}
	return retryDelay(r.ReceiveCount)
}

// giveBack makes visible again what is still being handled, and ends its holds first, so that nothing of it is sent from now
// on: least of all that an activity failed because its context ended.
func (q *poller) giveBack(ctx context.Context) int {
	var left []provider.Record
	q.mu.Lock()
	for b := range q.batches {
		left = append(left, b.unfinished()...)
	}
	q.mu.Unlock()
	if len(left) == 0 {
		return 0
	}
	for delay, records := range byDelay(left, stoppedDelay) {
		if err := q.p.AbandonRecords(ctx, q.queue, delay, records...); err != nil {
			q.options.Logger.WarnContext(ctx, "unfinished records stay invisible until their visibility ends", "queue", q.queue, "error", err)
		}
	}
	for i := range left {
		left[i].EndHold()
	}
	return len(left)
}
