package coroutine

import (
	"errors"
	"testing"
)

// An execution that is abandoned or unwinds never runs again.
func TestGate_abandonedOrUnwinding_isFinal(t *testing.T) {
	t.Parallel()
	for mode, enter := range map[Mode]func(*Gate){Abandoned: (*Gate).Abandon, Unwinding: (*Gate).unwind} {
		var g Gate
		g.StartTurn()
		g.StartReplay()
		enter(&g)

		g.EndTurn()
		g.StartTurn()
		g.StartReplay()
		if !g.Is(mode) {
			t.Errorf("mode %d: got %d", mode, g.Mode())
		}
	}
}

func TestGate_endTurn_endsTurnAndReplay(t *testing.T) {
	t.Parallel()
	var g Gate
	g.StartReplay()
	if !g.Is(BetweenTurns) {
		t.Error("a replay started without a turn")
	}

	g.StartTurn()
	g.EndTurn()
	if !g.Is(BetweenTurns) {
		t.Error("the turn has not ended")
	}
	g.StartTurn()
	g.StartReplay()
	g.EndTurn()
	if !g.Is(BetweenTurns) {
		t.Error("the replay has not ended")
	}
}

// The first error is the error of the execution, unless a foreign goroutine caused it.
func TestScheduler_severalErrors_keepsTheFirst(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	var s Scheduler[struct{}]
	s.Void(nil)
	if s.IsVoid() {
		t.Error("void mode without an error")
	}

	s.Void(first)
	s.Void(second)
	s.Void(nil)
	if got := s.Err(); !s.IsVoid() || !errors.Is(got, first) {
		t.Errorf("got %v", got)
	}

	foreign := &ForeignGoroutineError{}
	s.gate.recordForeign(foreign)
	s.gate.recordForeign(&ForeignGoroutineError{Late: true})
	if got := s.Err(); got != error(foreign) { //nolint:errorlint // the same value
		t.Errorf("got %v", got)
	}
}

// BenchmarkSwitch resumes a coroutine until it parks again.
func BenchmarkSwitch(b *testing.B) {
	var s Scheduler[[6]uintptr]
	s.Init(&Options{})
	s.Spawn(func() {
		for {
			s.Park()
		}
	})
	c := s.All()[0]
	b.ReportAllocs()
	for b.Loop() {
		s.resume(c)
	}
	s.Unwind()
}
