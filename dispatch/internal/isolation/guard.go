package isolation

import (
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// State is the state of a delivery's crash markers.
type State struct {
	crashCount         int
	marked             bool
	poison             bool
	othersDeleted      bool
	alone, longerDelay bool
}

// CrashCount returns the number of crash markers of other deliveries.
func (s *State) CrashCount() int { return s.crashCount }

// IsMarked reports whether this delivery has a crash marker.
func (s *State) IsMarked() bool { return s.marked }

// IsUnexplained reports whether crash markers of other deliveries remain.
func (s *State) IsUnexplained() bool { return s.crashCount > 0 && !s.othersDeleted }

// IsPoison reports whether the record is poison.
func (s *State) IsPoison() bool { return s.poison }

// SetPoison records that the record is poison. Its markers are kept.
func (s *State) SetPoison() { s.poison = true }

// NeedsLongerDelay reports whether the record must be released with a longer delay, so that it is not redelivered
// together with other suspects.
func (s *State) NeedsLongerDelay() bool { return s.longerDelay }

// Task is one delivery of a record.
type Task interface {
	Delivery() provider.Delivery
	Crashes() *State
	Log() *slog.Logger
}

// Guard writes and deletes crash markers, and lets one suspect at a time run in the process.
type Guard struct {
	base  *intake.Base
	alone *intake.Alone
}

// NewGuard returns a Guard.
func NewGuard(b *intake.Base) *Guard { return &Guard{b, intake.NewAlone()} }

// Mark writes the crash marker of a delivery. together is true if the delivery runs together with others. If markers of
// other deliveries exist, the delivery counts as marked only when it runs alone.
func (g *Guard) Mark(ctx context.Context, t Task, together bool) error {
	delivery := t.Delivery()
	delivery.Batched = together
	crashCount, err := intake.Mark(ctx, g.base, delivery)
	if err != nil {
		t.Log().ErrorContext(ctx, "crash marker write failed, releasing the work item",
			"event", logevent.CrashMarkerWriteFailed, "error", err)
		return err
	}
	s := t.Crashes()
	s.crashCount, s.marked = crashCount, !together || crashCount == 0
	return nil
}

// AwaitTurn waits until a suspect may run alone in its batch and in the process. It returns false if the wait exceeds
// limit, or if the record must be released.
func (g *Guard) AwaitTurn(ctx context.Context, t Task, q *Queue, r *provider.Record, limit time.Duration) bool {
	s := t.Crashes()
	suspect := &Suspect{CrashCount: s.crashCount, Deliveries: r.ReceiveCount, ReceiptHandle: r.ReceiptHandle}
	turn, ok := q.Join(suspect)
	if s.longerDelay = !ok; !ok {
		return false
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()

	select {
	case <-turn:
		s.alone = g.alone.Take(ctx, r, timeout.C)
	case <-timeout.C:
		q.Leave(suspect)
	case <-ctx.Done():
		q.Leave(suspect)
	}
	return s.alone
}

// EndTurn lets the next suspect of the process run if t was a suspect.
func (g *Guard) EndTurn(t Task) {
	if t.Crashes().alone {
		g.alone.Release()
	}
}

// NeedsUnmark reports whether Unmark deletes a marker.
func NeedsUnmark(t Task) bool { return t.Crashes().marked && !t.Crashes().poison }

// Unmark deletes the crash marker of a delivery before its record is redelivered, because this process has survived it.
// A marker that remains after an error is only one of the several that make a record poison.
func (g *Guard) Unmark(ctx context.Context, t Task) {
	if NeedsUnmark(t) {
		_ = g.delete(ctx, t, t.Delivery())
	}
}

// UnmarkOthers deletes the crash markers of other deliveries once, after this delivery has made progress. A record that
// crashes its process makes no progress. The marker of this delivery remains, so that a record that crashes later still
// runs alone.
func (g *Guard) UnmarkOthers(ctx context.Context, t Task) {
	s := t.Crashes()
	if !s.marked || !s.IsUnexplained() {
		return
	}
	delivery := t.Delivery()
	delivery.Progressed = true
	if g.delete(ctx, t, delivery) == nil {
		s.othersDeleted = true
	}
}

func (g *Guard) delete(ctx context.Context, t Task, delivery provider.Delivery) error {
	err := intake.Unmark(ctx, g.base, delivery)
	if err != nil {
		t.Log().WarnContext(ctx, "crash marker deletion failed", "event", logevent.CrashMarkerDeleteFailed,
			"error", err)
	}
	return err
}
