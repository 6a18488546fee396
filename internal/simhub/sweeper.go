package simhub

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/logevent"
)

// SweepInterval is the time between two ticks of the sweeper, as in the stack: EventBridge invokes the renewer every 2
// minutes.
const SweepInterval = 2 * time.Minute

// Sweeper runs the sweeps of a hub (dispatch.Renewer.Sweep) in virtual time, at ticks of SweepInterval after the
// creation of the hub. It skips the ticks at which a sweep would find no work, so that years without work are cheap.
//
// The driver of the hub advances the clock to Next at most. It then calls Step until no work is left, and then Close.
// All methods are safe for concurrent use.
type Sweeper struct {
	hub   *Hub
	began time.Time
	ended chan struct{} // capacity 1

	mu      sync.Mutex
	closed  time.Time // ticks up to this time have passed
	running bool
	jobs    map[string]bool // running jobs, by ID
	starts  []time.Time     // due times of starts that may lack a wake
	outage  time.Time       // the end of the last outage that no sweep has followed; zero if there is none
}

func newSweeper(h *Hub) *Sweeper {
	now := bubbleTime()
	return &Sweeper{hub: h, began: now, closed: now, ended: make(chan struct{}, 1), jobs: map[string]bool{}}
}

// putMark records that no retention ends before today. Otherwise the first sweep would search the days of a year.
func (s *Sweeper) putMark(table string) error {
	it := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pkHub}, "sk": &types.AttributeValueMemberS{Value: "watch#retention"},
		"mark": &types.AttributeValueMemberS{Value: strconv.Quote(s.began.UTC().Format(time.DateOnly))},
	}
	if _, err := s.hub.Cloud.Table.PutItem(s.hub.life,
		&dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	return nil
}

// Next returns the first tick with work. ok is false if there is none, or if a sweep is running.
func (s *Sweeper) Next() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, some := s.due()
	if !some || s.running {
		return at, false
	}
	return s.tick(due), true
}

// tick returns the first open tick at or after a time.
func (s *Sweeper) tick(from time.Time) time.Time {
	after := s.closed.Sub(s.began).Truncate(SweepInterval) + SweepInterval
	wanted := (min(from.Sub(s.began), math.MaxInt64-SweepInterval) + SweepInterval - 1).Truncate(SweepInterval)
	return s.began.Add(max(after, wanted))
}

// Step starts a sweep if a tick with work is due, and reports whether it did.
func (s *Sweeper) Step() bool {
	at, ok := s.Next()
	now := bubbleTime()
	if !ok || at.After(now) {
		return false
	}
	s.mu.Lock()
	s.running, s.closed = true, now
	s.mu.Unlock()
	// As calls of a client, they are ordered and CrashAt does not count them.
	ctx := context.WithValue(s.hub.life, invocationKey{}, &invocation{name: "sweeper", client: true})
	go s.sweep(ctx, s.hub.Renewer)
	return true
}

// sweep runs the sweeper once. The next tick repeats failed work.
func (s *Sweeper) sweep(ctx context.Context, k *dispatch.Renewer) {
	now := bubbleTime()
	_, err := k.Sweep(ctx)
	if err != nil && ctx.Err() == nil {
		s.hub.options.Logger.WarnContext(ctx, "sweep failed, retrying on the next tick", "event", logevent.SweepFailed,
			"error", err)
	}

	s.mu.Lock()
	if s.running = false; err == nil {
		if s.outage.Before(now) {
			s.outage = time.Time{}
		}
		s.starts = slices.DeleteFunc(s.starts, func(due time.Time) bool { return !due.After(now) })
	}
	s.mu.Unlock()
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// Close closes the ticks up to now. Work that arrives later waits for the next tick.
func (s *Sweeper) Close() {
	now := bubbleTime()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = now
}

// Ended returns a channel on which a value arrives after a sweep has ended. Use only one reader.
func (s *Sweeper) Ended() <-chan struct{} { return s.ended }

// IsRunning reports whether a sweep is running.
func (s *Sweeper) IsRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// IsBusy reports whether the sweeper has work that changes other instances or lets them continue: a sweep, a bulk job,
// a deletion, dead letters. Work that becomes due only by time, such as a retention, does not count.
func (s *Sweeper) IsBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, deleting := s.attentionDue(attentionDeleting)
	return s.running || len(s.jobs) > 0 || deleting || s.hasLetters()
}

// StartMayBeLost notifies the sweeper of a start that may have sent no wake. The client may have failed before it sent
// the wake, or may commit the start in its own transaction.
func (s *Sweeper) StartMayBeLost() {
	now := bubbleTime()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, after := range []time.Duration{pendingFor, pendingFor + lateBy} {
		if due := now.Add(after); !slices.Contains(s.starts, due) {
			s.starts = append(s.starts, due)
		}
	}
}

// OutageUntil notifies the sweeper that a service fails until a time. The first sweep after that time recovers the
// messages that queues moved to their dead-letter queues.
func (s *Sweeper) OutageUntil(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.After(s.outage) {
		s.outage = end
	}
}
