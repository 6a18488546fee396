package replay

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// An abandoned execution, and one that unwinds, never runs again.
func TestGateHasNoWayBack(t *testing.T) {
	t.Parallel()
	for mode, enter := range map[int32]func(*gate){abandoned: (*gate).abandon, unwinding: (*gate).unwind} {
		var g gate
		g.startTurn()
		g.startReplay()
		enter(&g)

		g.endTurn()
		g.startTurn()
		g.startReplay()
		if !g.is(mode) {
			t.Errorf("mode %d became %d", mode, g.state())
		}
	}
}

func TestGateEndsATurnAndAReplay(t *testing.T) {
	t.Parallel()
	var g gate
	g.startReplay()
	if !g.is(resting) {
		t.Error("a replay began without a turn")
	}

	g.startTurn()
	g.endTurn()
	if !g.is(resting) {
		t.Error("the turn goes on")
	}
	g.startTurn()
	g.startReplay()
	g.endTurn()
	if !g.is(resting) {
		t.Error("the replay goes on")
	}
}

// The first error says why an execution is void, unless a foreign goroutine caused it.
func TestVerdictIsTheFirstCause(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	var s scheduler
	s.voidWith(nil)
	if s.stuck() {
		t.Error("void without an error")
	}

	s.voidWith(first)
	s.voidWith(second)
	s.voidWith(nil)
	if got := s.verdict(); !s.stuck() || !errors.Is(got, first) {
		t.Errorf("%v", got)
	}

	foreign := &ForeignGoroutineError{}
	s.gate.recordForeign(foreign)
	s.gate.recordForeign(&ForeignGoroutineError{Late: true})
	if got := s.verdict(); got != error(foreign) { //nolint:errorlint // the very one
		t.Errorf("%v", got)
	}
}

func TestLifeForgetsTheInputOnceTheBodyHasIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l life
	l.setStart(json.RawMessage("1"), &at)
	if l.mayBegin(at.Add(-1)) || !l.mayBegin(at) {
		t.Error("it begins at another time")
	}
	l.setDoomed(true)
	if l.mayBegin(at) {
		t.Error("it begins although the turn terminates it")
	}

	l.setDoomed(false)
	if got := l.begin(); string(got) != "1" || l.input != nil {
		t.Errorf("%s, and it keeps %s", got, l.input)
	}
	if l.mayBegin(at) || !l.hasBegun() || l.hasEnded() {
		t.Error("it begins twice")
	}
	l.end()
	if !l.hasBegun() || !l.hasEnded() {
		t.Error("it has not ended")
	}
}

// parked is an event that parks external events, and an outcome of the execution's own.
func parked() *history.Event {
	return &history.Event{ID: 4, Kind: history.InputsParked, Inputs: []history.Event{
		{Kind: history.ExternalEventRaised, Name: "a"},
		{Kind: history.ActivityCompleted, SourceEventID: 3},
		{Kind: history.ExternalEventRaised, Name: "b"},
	}}
}

func TestParkedInputsAreBlockedUntilATurnTakesThem(t *testing.T) {
	t.Parallel()
	var p *parking
	p.dropAll()
	if p.isBlocked() || !p.isEmpty() || p.inherited() != nil {
		t.Error("none is not empty")
	}

	p = p.add(parked(), &payloads.Loader{})
	if !p.isBlocked() || p.isEmpty() {
		t.Error("it is not blocked")
	}
	p.drop(1)
	if p.isBlocked() || len(p.inputs) != 2 {
		t.Errorf("blocked %v, %d inputs", p.isBlocked(), len(p.inputs))
	}
	p.dropAll()
	if !p.isEmpty() {
		t.Errorf("%d inputs", len(p.inputs))
	}
}

// What the turn has not come to, and concerns the instance, is for the next execution.
func TestParkedInputsThatAreLeftAreInherited(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 2} {
		p := (*parking)(nil).add(parked(), &payloads.Loader{})
		turn := &Turn{MostParked: most, Inputs: [][]history.Event{{{Kind: history.CancelRequested}}}}
		if alone := p.unpark(turn); alone != most || len(p.inputs) != (3-most)%3 {
			t.Errorf("%d alone, %d stay", alone, len(p.inputs))
		}

		p.takeNext()
		if left := p.inherited(); len(left) != 1 || left[0].Name != "b" {
			t.Errorf("%v", left)
		}
		p.endTurn()
		if p.inherited() != nil {
			t.Error("it keeps what is left after the turn")
		}
	}
}

// A child that has settled is not tried again, and a warm instance does not keep its input.
func TestSettledChildForgetsItsInput(t *testing.T) {
	t.Parallel()
	x := newExecution(Orchestration{}, Options{})
	child := &Task{x: x, id: 3, child: &child{input: history.Payload("1")}}
	x.tasks.add(child)
	x.tasks.settle(child, json.RawMessage("22"), nil)
	if child.child.input != nil || x.tasks.untaken != 2 {
		t.Errorf("%s, %d bytes", child.child.input, x.tasks.untaken)
	}
	if got := child.TakeResult(); string(got) != "22" || x.tasks.untaken != 0 || child.TakeResult() != nil {
		t.Errorf("%s, %d bytes", got, x.tasks.untaken)
	}
}
