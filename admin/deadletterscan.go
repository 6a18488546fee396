package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

const (
	// deadLetterHold is the time for which received dead letters stay hidden from other processes and from this scan.
	// It is shorter than the five minutes in which SQS FIFO queues drop duplicates, so that a duplicate after a crash
	// is dropped.
	deadLetterHold = 2 * time.Minute
	// maxScanned limits the dead letters of one scan. SQS hides at most 120,000 messages of a queue.
	maxScanned = 100_000
	// scanConcurrency is the number of batches of a queue that are processed concurrently.
	scanConcurrency = 8
	// maxEmptyReceives is the number of consecutive receives without new dead letters after which the scan of a queue
	// ends.
	maxEmptyReceives = 2
	// maxFailedCalls is the number of failed calls, each with its retries, after which the scan stops.
	maxFailedCalls = 10
	// maxScanErrors is the number of errors that a scan returns.
	maxScanErrors = 10
	// cleanupTimeout limits the calls at the end of a scan. These calls continue after ctx has ended.
	cleanupTimeout = 10 * time.Second
)

// deadLetterBackend returns the backend as a provider.DeadLetters, or ErrDeadLettersUnsupported.
func (l local) deadLetterBackend() (provider.DeadLetters, error) {
	hub, ok := unwrap.As[provider.DeadLetters](l.hub)
	if !ok || len(hub.DeadLetterQueues()) == 0 {
		return nil, ErrDeadLettersUnsupported
	}
	return hub, nil
}

// deadLetterScan receives the dead letters of queues, one queue after another, and processes the selected ones. It
// hides each dead letter while it runs.
type deadLetterScan struct {
	hub         provider.DeadLetters
	query       DeadLetterQuery
	queues      []string
	concurrency int
	now         func() time.Time
	// deadline is the time at which the scan stops receiving. Zero means no deadline.
	deadline time.Time
	// process processes selected dead letters of one receive. Unless readOnly is set, it deletes them.
	process  func(ctx context.Context, queue string, letters ...DeadLetter) error
	readOnly bool
	// skip, if set, reports whether a selected dead letter is left unchanged. enough, if set, reports whether to stop.
	skip   func(*DeadLetter) bool
	enough func() bool

	mu         sync.Mutex
	seen       map[string]bool
	held       map[string][]DeadLetter // received and not deleted, by queue, without bodies
	counts     DeadLetterResult
	missingIDs int // number of IDs of the query that have not been found yet
	errs       []error
	incomplete bool
	failures   int
}

func (l local) newDeadLetterScan(q DeadLetterQuery) (*deadLetterScan, error) {
	hub, err := l.deadLetterBackend()
	if err != nil {
		return nil, err
	}
	s := &deadLetterScan{
		hub: hub, query: q, queues: hub.DeadLetterQueues(), concurrency: scanConcurrency, now: l.now,
		seen: map[string]bool{}, held: map[string][]DeadLetter{}, missingIDs: len(q.IDs),
	}
	if q.TimeLimit > 0 {
		s.deadline = l.now().Add(q.TimeLimit)
	}
	if q.Queue != "" {
		if !slices.Contains(s.queues, q.Queue) {
			return nil, &provider.FieldError{Field: "queue", Problem: fmt.Sprintf("must be one of %s, is %q",
				strings.Join(s.queues, ", "), provider.Excerpt(q.Queue))}
		}
		s.queues = []string{q.Queue}
	}
	return s, nil
}

func checkTimeLimit(q *DeadLetterQuery) error {
	if q.TimeLimit < 0 {
		return &provider.FieldError{
			Field: "within", Problem: fmt.Sprintf("must not be negative, is %v", q.TimeLimit),
		}
	}
	return nil
}

// run scans the queues. At the end it makes the remaining dead letters visible again.
func (s *deadLetterScan) run(ctx context.Context) error {
	for _, queue := range s.queues {
		var scanning sync.WaitGroup
		for range s.concurrency {
			scanning.Go(func() { s.scan(ctx, queue) })
		}
		scanning.Wait()
	}

	if s.readOnly || !s.timedOut() {
		s.release(ctx)
	}
	if err := ctx.Err(); err != nil {
		s.incomplete = true
		s.errs = append(s.errs, context.Cause(ctx))
	}
	return errors.Join(s.errs...)
}

// release makes the remaining dead letters visible again, even if ctx has ended.
func (s *deadLetterScan) release(ctx context.Context) {
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	for queue, letters := range s.held {
		_ = s.hub.ReleaseDeadLetters(limited, queue, letters...) // otherwise they reappear within minutes
	}
}

func (s *deadLetterScan) timedOut() bool { return !s.deadline.IsZero() && !s.now().Before(s.deadline) }

// scan receives and processes the dead letters of a queue until it finds no new ones.
func (s *deadLetterScan) scan(ctx context.Context, queue string) {
	for empty := 0; empty < maxEmptyReceives && !s.done(ctx); {
		received, err := s.hub.ReceiveDeadLetters(ctx, queue, deadLetterHold)
		if err != nil {
			s.fail(ctx, queue, nil, err)
			continue
		}
		selected, hasNew := s.selectFrom(queue, received)
		if !hasNew {
			empty++
			s.noteRepeats(received)
			continue
		}
		empty = 0
		if len(selected) > 0 {
			s.processAll(ctx, queue, selected)
		}
	}
}

// processAll processes dead letters together. If that fails, it processes them one by one, so that a dead letter that
// fails does not block the others. It only deletes dead letters that were already sent.
func (s *deadLetterScan) processAll(ctx context.Context, queue string, selected []DeadLetter) {
	err := s.process(ctx, queue, selected...)
	if err == nil {
		s.succeed(queue, selected)
		return
	}

	sent := sentIDs(err)
	for _, letter := range selected {
		var err error
		wasSent := slices.Contains(sent, letter.Record.ID)
		if !wasSent {
			err = s.process(ctx, queue, letter)
			wasSent = len(sentIDs(err)) > 0
		}
		if wasSent {
			err = s.dropSent(ctx, queue, letter)
		}
		if err != nil {
			s.fail(ctx, queue, []DeadLetter{letter}, err)
		} else {
			s.succeed(queue, []DeadLetter{letter})
		}
	}
}

// sentIDs returns the IDs of the dead letters that a redrive sent before it failed.
func sentIDs(err error) []string {
	if sent, ok := errors.AsType[*provider.SentError](err); ok {
		return sent.IDs
	}
	return nil
}

// dropSent deletes a dead letter that was sent, even if ctx has ended, because the next redrive would send it again.
func (s *deadLetterScan) dropSent(ctx context.Context, queue string, letter DeadLetter) error {
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	if err := s.hub.DropDeadLetters(limited, queue, letter); err != nil {
		s.mu.Lock()
		s.counts.SentNotDeleted = append(s.counts.SentNotDeleted, letter.Record.ID)
		s.mu.Unlock()
		return fmt.Errorf("dead letter %s of %s was sent but not deleted; drop it, because a redrive would send it "+
			"again: %w",
			letter.Record.ID, queue, err)
	}
	return nil
}

// done reports whether the scan must stop.
func (s *deadLetterScan) done(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= maxScanned || s.failures >= maxFailedCalls || s.timedOut() {
		s.incomplete = true
		return true
	}
	return ctx.Err() != nil || s.enough != nil && s.enough() || len(s.query.IDs) > 0 && s.missingIDs == 0
}

// selectFrom records received dead letters and returns the selected ones. hasNew is false if the scan had received all
// of them before.
func (s *deadLetterScan) selectFrom(queue string, received []DeadLetter) (selected []DeadLetter, hasNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range received {
		repeated := s.seen[d.Record.ID]
		s.seen[d.Record.ID] = true
		hasNew = hasNew || !repeated
		switch {
		case repeated || !s.matches(&d):
			s.hold(queue, d)
		case !s.query.SentBefore.IsZero() && d.SentAt.After(s.query.SentBefore):
			s.hold(queue, d)
			s.counts.TooRecent++
		case s.skip != nil && s.skip(&d):
			s.hold(queue, d)
			s.counts.Skipped++
			s.missingIDs--
		default:
			selected = append(selected, d)
			s.missingIDs--
		}
	}
	return selected, hasNew
}

// hold records dead letters for the release at the end, without their bodies of up to a megabyte. The caller must hold
// s.mu.
func (s *deadLetterScan) hold(queue string, letters ...DeadLetter) {
	for i := range letters {
		r := &letters[i].Record
		s.held[queue] = append(s.held[queue], DeadLetter{
			Queue: queue, Record: provider.Record{ID: r.ID, ReceiptHandle: r.ReceiptHandle},
		})
	}
}

func (s *deadLetterScan) matches(d *DeadLetter) bool {
	q := &s.query
	return strings.HasPrefix(d.Reason, q.ReasonPrefix) &&
		(q.InstanceID == "" || d.Subject.InstanceID == q.InstanceID) &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, d.Record.ID))
}

// noteRepeats marks the scan as incomplete if it received hidden dead letters again. The scan then took longer than
// deadLetterHold and may have missed dead letters.
func (s *deadLetterScan) noteRepeats(received []DeadLetter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incomplete = s.incomplete || len(received) > 0
}

func (s *deadLetterScan) succeed(queue string, letters []DeadLetter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly {
		s.hold(queue, letters...)
		return
	}
	s.counts.Done += int64(len(letters))
}

func (s *deadLetterScan) fail(ctx context.Context, queue string, letters []DeadLetter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(queue, letters...)
	s.counts.Failed += int64(len(letters))
	if ctx.Err() != nil {
		return
	}
	if _, isCall := errors.AsType[*provider.Error](err); isCall || len(letters) == 0 {
		s.failures++
	}
	if len(s.errs) < maxScanErrors {
		s.errs = append(s.errs, err)
	}
}

func (s *deadLetterScan) result() DeadLetterResult {
	r := s.counts
	r.Complete = !s.incomplete
	return r
}
