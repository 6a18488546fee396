package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// DeadLetter is a record in a dead-letter queue.
type DeadLetter = provider.DeadLetter

// ErrDeadLettersUnsupported means that the client's Backend does not give access to dead letters. See
// provider.DeadLetters.
var ErrDeadLettersUnsupported = errors.New("hub does not support dead letters")

// DeadLetterQuery selects dead letters. A dead letter must match all fields that are not zero.
type DeadLetterQuery struct {
	// Queue is the queue from which the dead letters come: "inbox", "timers" or the name of a work queue.
	Queue string
	// ReasonPrefix is a prefix of the reason, such as "corrupt:".
	ReasonPrefix string
	// InstanceID is the instance to which the dead letters belong.
	InstanceID string
	// IDs are the IDs of the dead letters.
	IDs []string
	// SentBefore excludes dead letters that were moved to the dead-letter queue later. Zero means no limit, with one
	// exception: a redrive without IDs uses its start time, so that it does not redrive a record twice.
	SentBefore time.Time
	// TimeLimit is about how long the call searches for dead letters; 0 means until it finds no more. When a redrive or
	// drop stops for this limit, the dead letters that it saw and kept stay hidden for two minutes, so that the next
	// call finds others. A negative value is a *provider.FieldError.
	TimeLimit time.Duration
}

// DeadLetterList is a list of dead letters.
type DeadLetterList struct {
	Items []DeadLetter
	// Complete is false if the call stopped before it had seen all visible dead letters.
	Complete bool
}

// DeadLetterCount is the approximate number of dead letters of a queue. Hidden counts those that another process has
// received. The sweeper hides dead letters for a minute each time it checks them.
type DeadLetterCount struct {
	Queue    string `json:"queue"`
	Visible  int    `json:"visible"`
	InFlight int    `json:"hidden"`
}

// DeadLetterResult is the result of a redrive or a drop.
type DeadLetterResult struct {
	// Done counts dead letters that were redriven or dropped. Skipped counts selected dead letters that only
	// [ForceRedrive] redrives. TooRecent counts dead letters that were excluded by SentBefore only, including those
	// that were redriven and failed again. Failed counts dead letters whose redrive or drop failed.
	Done, Skipped, TooRecent, Failed int64
	// SentNotDeleted holds the IDs of dead letters that were sent again but could not be deleted. Drop them: a redrive would send
	// them again.
	SentNotDeleted []string
	// Complete is false if more dead letters may match, because the call reached the limit of 100,000 dead letters, its
	// time limit or the end of ctx.
	Complete bool
}

// RedriveOption is an option of RedriveDeadLetters.
type RedriveOption func(*redriveOptions)

type redriveOptions struct{ force bool }

// ForceRedrive also redrives dead letters for which [IsHandled] returns true. An event may then be applied twice.
func ForceRedrive() RedriveOption { return func(o *redriveOptions) { o.force = true } }

const (
	// lettersHidden is how long dead letters are hidden that were received: from others, and from this call, which must
	// not see one twice. A process that dies leaves them hidden for as long: that is less than SQS's five minutes, in
	// which a message that was sent already is taken once.
	lettersHidden = 2 * time.Minute
	// mostLetters is how many dead letters one call looks at: SQS hides 120,000 of a queue at most.
	mostLetters = 100_000
	// lettersAtOnce is how many batches of a queue are dealt with at once.
	lettersAtOnce = 8
	// emptyReceives is how many receives in a row that find nothing new end a queue.
	emptyReceives = 2
	// failedCalls is how many calls may fail, each with its repetitions, before all give up.
	failedCalls = 10
	// errorsTold is how many errors are returned.
	errorsTold = 10
	// lettersRelease is how long the end of a call may take, also where ctx has ended.
	lettersRelease = 10 * time.Second
)

// CountDeadLetters returns the approximate number of dead letters of each queue, sorted by queue name.
func (c *Client) CountDeadLetters(ctx context.Context) ([]DeadLetterCount, error) {
	hub, err := c.deadLetters()
	if err != nil {
		return nil, fmt.Errorf("client: dead letters: %w", err)
	}
	queues := hub.DeadLetterQueues()
	counts := make([]DeadLetterCount, len(queues))
	for i, queue := range queues {
		counts[i].Queue = queue
		if counts[i].Visible, counts[i].InFlight, err = hub.CountDeadLetters(ctx, queue); err != nil {
			return nil, fmt.Errorf("client: dead letters: %w", err)
		}
	}
	return counts, nil
}

// DeadLetters returns up to limit dead letters that match q, sorted by queue name. The limit is 1 to 1,000; 0 means
// 100. The call hides the dead letters from other processes while it runs. There is no next page, because SQS does not
// order dead letters.
//
// DeadLetters does not return dead letters that another process has hidden, nor more than ten dead letters of the inbox
// for the same instance. CountDeadLetters returns the total number.
func (c *Client) DeadLetters(ctx context.Context, q DeadLetterQuery, limit int) (list DeadLetterList, err error) {
	if err := checkLimit(limit); err != nil {
		return list, fmt.Errorf("client: dead letters: %w", err)
	}
	if limit == 0 {
		limit = defaultPage
	}
	w, err := c.newLetterWalk(q)
	if err != nil {
		return list, fmt.Errorf("client: dead letters: %w", err)
	}

	w.atOnce = 1
	w.stay = true
	w.visit = func(_ context.Context, _ string, some ...DeadLetter) error {
		list.Items = append(list.Items, some...)
		return nil
	}
	w.enough = func() bool { return len(list.Items) >= limit }
	if err = w.run(ctx); err != nil {
		return DeadLetterList{}, fmt.Errorf("client: dead letters: %w", err)
	}
	list.Complete = !w.cut && !w.enough() || len(q.IDs) > 0 && w.wanted == 0
	list.Items = list.Items[:min(limit, len(list.Items))]
	return list, nil
}

// RedriveDeadLetters sends the dead letters that match q to their queues as new records and then deletes them. Without
// ForceRedrive it skips dead letters for which IsHandled returns true.
//
// No dead letter is lost if the process dies, but a record that was sent and not deleted is sent again by the next
// call. The inbox drops such a duplicate within five minutes. Later, only an event without an ID is applied twice. A
// single call never sends a dead letter twice: DeadLetterResult.SentNotDeleted lists those that it sent and could not
// delete.
//
// The error joins up to ten errors of dead letters that failed. The others are redriven.
func (c *Client) RedriveDeadLetters(ctx context.Context, q DeadLetterQuery, opts ...RedriveOption) (DeadLetterResult, error) {
	var o redriveOptions
	for _, opt := range opts {
		opt(&o)
	}
	if q.SentBefore.IsZero() && len(q.IDs) == 0 {
		q.SentBefore = c.now()
	}
	w, err := c.newLetterWalk(q)
	if err != nil {
		return DeadLetterResult{}, fmt.Errorf("client: redrive: %w", err)
	}
	if !o.force {
		w.keep = IsHandled
	}
	w.visit = w.hub.RedriveDeadLetters
	if err = w.run(ctx); err != nil {
		err = fmt.Errorf("client: redrive: %w", err)
	}
	return w.result(), err
}

// DropDeadLetters permanently deletes the dead letters that match q. If the process dies, the remaining dead letters
// are unchanged.
func (c *Client) DropDeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterResult, error) {
	w, err := c.newLetterWalk(q)
	if err != nil {
		return DeadLetterResult{}, fmt.Errorf("client: drop: %w", err)
	}
	w.visit = w.hub.DropDeadLetters
	if err = w.run(ctx); err != nil {
		err = fmt.Errorf("client: drop: %w", err)
	}
	return w.result(), err
}

// IsHandled reports whether a dead letter needs no redrive because history already contains its record or because the
// record was sent again.
func IsHandled(d *DeadLetter) bool {
	return strings.HasPrefix(d.Reason, provider.ReasonPoison) || strings.HasPrefix(d.Reason, provider.ReasonRecovered)
}

func (c *Client) deadLetters() (provider.DeadLetters, error) {
	hub, ok := offered.By[provider.DeadLetters](c.hub)
	if !ok || len(hub.DeadLetterQueues()) == 0 {
		return nil, ErrDeadLettersUnsupported
	}
	return hub, nil
}

// letterWalk goes through the dead letters of queues, and hides each while it lasts.
type letterWalk struct {
	hub    provider.DeadLetters
	query  DeadLetterQuery
	queues []string
	atOnce int
	// until is when to look for no more; zero: never.
	until time.Time
	now   func() time.Time
	// visit deals with dead letters of one receive that are selected. They are gone then, unless stay is set.
	visit func(ctx context.Context, queue string, some ...DeadLetter) error
	stay  bool
	// keep, if set, reports what is selected and yet left alone; enough, if set, when to stop.
	keep   func(*DeadLetter) bool
	enough func() bool

	mu     sync.Mutex
	seen   map[string]bool
	held   map[string][]DeadLetter // by queue: what was received and is still there, by what its release needs
	counts DeadLetterResult
	wanted int // IDs that were not found yet
	errs   []error
	cut    bool

	failures int
}

func (c *Client) newLetterWalk(q DeadLetterQuery) (*letterWalk, error) {
	hub, err := c.deadLetters()
	if err != nil {
		return nil, err
	}
	w := &letterWalk{
		hub: hub, query: q, queues: hub.DeadLetterQueues(), atOnce: lettersAtOnce, now: c.now, seen: map[string]bool{}, held: map[string][]DeadLetter{}, wanted: len(q.IDs),
	}
	if q.TimeLimit < 0 {
		return nil, &provider.FieldError{Field: "within", Problem: fmt.Sprintf("must not be negative, is %v", q.TimeLimit)}
	}
	if q.TimeLimit > 0 {
		w.until = c.now().Add(q.TimeLimit)
	}
	if q.Queue != "" {
		if !slices.Contains(w.queues, q.Queue) {
			return nil, &provider.FieldError{Field: "queue", Problem: fmt.Sprintf("must be one of %s, is %q",
				strings.Join(w.queues, ", "), provider.Excerpt(q.Queue))}
		}
		w.queues = []string{q.Queue}
	}
	return w, nil
}

// run goes through one queue after the other, and makes visible again in the end what is still there.
func (w *letterWalk) run(ctx context.Context) error {
	for _, queue := range w.queues {
		var walking sync.WaitGroup
		for range w.atOnce {
			walking.Go(func() { w.walk(ctx, queue) })
		}
		walking.Wait()
	}

	if w.stay || !w.late() {
		w.release(ctx)
	}
	if err := ctx.Err(); err != nil {
		w.cut = true
		w.errs = append(w.errs, context.Cause(ctx))
	}
	return errors.Join(w.errs...)
}

// release makes visible again what is still there, also where ctx has ended.
func (w *letterWalk) release(ctx context.Context) {
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), lettersRelease)
	defer stop()
	for queue, letters := range w.held {
		_ = w.hub.ReleaseDeadLetters(limited, queue, letters...) // they are visible in some minutes otherwise
	}
}

// late reports whether the time to look is over.
func (w *letterWalk) late() bool { return !w.until.IsZero() && !w.now().Before(w.until) }

func (w *letterWalk) walk(ctx context.Context, queue string) {
	for nothing := 0; nothing < emptyReceives && !w.over(ctx); {
		some, err := w.hub.ReceiveDeadLetters(ctx, queue, lettersHidden)
		if err != nil {
			w.fail(ctx, queue, nil, err)
			continue
		}
		selected, fresh := w.take(queue, some)
		if !fresh {
			nothing++
			w.repeats(some)
			continue
		}
		nothing = 0
		if len(selected) == 0 {
			continue
		}

		w.deal(ctx, queue, selected)
	}
}

// deal visits dead letters together and, where that fails, one by one: one that cannot be dealt with must not hold up the
// others. What was sent already is only deleted.
func (w *letterWalk) deal(ctx context.Context, queue string, selected []DeadLetter) {
	err := w.visit(ctx, queue, selected...)
	if err == nil {
		w.done(queue, selected)
		return
	}

	sent := wasSent(err)
	for _, one := range selected {
		var err error
		gone := slices.Contains(sent, one.Record.ID)
		if !gone {
			err = w.visit(ctx, queue, one)
			gone = len(wasSent(err)) > 0
		}
		if gone {
			err = w.dropSent(ctx, queue, one)
		}
		if err != nil {
			w.fail(ctx, queue, []DeadLetter{one}, err)
		} else {
			w.done(queue, []DeadLetter{one})
		}
	}
}

// wasSent returns the IDs of the dead letters that a redrive has sent before its error.
func wasSent(err error) []string {
	if sent, ok := errors.AsType[*provider.SentError](err); ok {
		return sent.IDs
	}
	return nil
}

// dropSent deletes what was sent again, also where ctx has ended: the next redrive would send it once more.
func (w *letterWalk) dropSent(ctx context.Context, queue string, one DeadLetter) error {
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), lettersRelease)
	defer stop()
	if err := w.hub.DropDeadLetters(limited, queue, one); err != nil {
		w.mu.Lock()
		w.counts.SentNotDeleted = append(w.counts.SentNotDeleted, one.Record.ID)
		w.mu.Unlock()
		return fmt.Errorf("dead letter %s of %s was sent but not deleted; drop it, because a redrive would send it "+
			"again: %w",
			one.Record.ID, queue, err)
	}
	return nil
}

// over reports whether there is nothing more to do.
func (w *letterWalk) over(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) >= mostLetters || w.failures >= failedCalls || w.late() {
		w.cut = true
		return true
	}
	return ctx.Err() != nil || w.enough != nil && w.enough() || len(w.query.IDs) > 0 && w.wanted == 0
}

// take notes what was received, and returns what of it is to be visited. fresh is false where there is nothing new.
func (w *letterWalk) take(queue string, some []DeadLetter) (selected []DeadLetter, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range some {
		repeated := w.seen[d.Record.ID]
		w.seen[d.Record.ID] = true
		fresh = fresh || !repeated
		switch {
		case repeated || !w.selects(&d):
			w.hold(queue, d)
		case !w.query.SentBefore.IsZero() && d.SentAt.After(w.query.SentBefore):
			w.hold(queue, d)
			w.counts.TooRecent++
		case w.keep != nil && w.keep(&d):
			w.hold(queue, d)
			w.counts.Skipped++
			w.wanted--
		default:
			selected = append(selected, d)
			w.wanted--
		}
	}
	return selected, fresh
}

// hold notes what is to be made visible in the end: without bodies, which may be a megabyte each. w.mu is held.
func (w *letterWalk) hold(queue string, some ...DeadLetter) {
	for i := range some {
		r := &some[i].Record
		w.held[queue] = append(w.held[queue], DeadLetter{Queue: queue, Record: provider.Record{ID: r.ID, ReceiptHandle: r.ReceiptHandle}})
	}
}

func (w *letterWalk) selects(d *DeadLetter) bool {
	q := &w.query
	return strings.HasPrefix(d.Reason, q.ReasonPrefix) && (q.InstanceID == "" || d.Subject.InstanceID == q.InstanceID) &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, d.Record.ID))
}

// repeats notes that a call has taken so long that what it had hidden is visible again: there may be more behind that.
func (w *letterWalk) repeats(some []DeadLetter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = w.cut || len(some) > 0
}

func (w *letterWalk) done(queue string, some []DeadLetter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stay {
		w.hold(queue, some...)
		return
	}
	w.counts.Done += int64(len(some))
}

func (w *letterWalk) fail(ctx context.Context, queue string, there []DeadLetter, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold(queue, there...)
	w.counts.Failed += int64(len(there))
	if ctx.Err() != nil {
		return
	}
	if _, call := errors.AsType[*provider.Error](err); call || len(there) == 0 {
		w.failures++
	}
	if len(w.errs) < errorsTold {
		w.errs = append(w.errs, err)
	}
}

func (w *letterWalk) result() DeadLetterResult {
	r := w.counts
	r.Complete = !w.cut
	return r
}
