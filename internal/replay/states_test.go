package replay

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/loading"
)

func TestLifecycle_started_releasesInput(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l lifecycle
	l.setStart(json.RawMessage("1"), &at)
	if l.mayStart(at.Add(-1)) || !l.mayStart(at) {
		t.Error("mayStart does not match the start time")
	}
	l.setTerminating(true)
	if l.mayStart(at) {
		t.Error("mayStart reports true while the turn terminates the execution")
	}

	l.setTerminating(false)
	if got := l.start(); string(got) != "1" || l.input != nil {
		t.Errorf("got input %s at the start, stored input %s", got, l.input)
	}
	if l.mayStart(at) || !l.hasStarted() || l.hasEnded() {
		t.Error("wrong state after the start")
	}
	l.end()
	if !l.hasStarted() || !l.hasEnded() {
		t.Error("wrong state after the end")
	}
}

// parked returns an event with parked inputs: external events, and an outcome that belongs to the execution.
func parked() *history.Event {
	return &history.Event{ID: 4, Kind: history.InputsParked, Inputs: []history.Event{
		{Kind: history.ExternalEventRaised, Name: "a"},
		{Kind: history.ActivityCompleted, SourceEventID: 3},
		{Kind: history.ExternalEventRaised, Name: "b"},
	}}
}

func TestParkedInputs_untilATurnTakesThem_areBlocked(t *testing.T) {
	t.Parallel()
	var p *parkedInputs
	p.dropAll()
	if p.isBlocked() || p.count() != 0 || p.inherited() != nil {
		t.Error("nil parkedInputs is not empty")
	}

	p = p.add(parked(), &loading.Loader{})
	if !p.isBlocked() || p.count() == 0 {
		t.Error("not blocked by parked inputs")
	}
	p.drop(1)
	if p.isBlocked() || len(p.inputs) != 2 {
		t.Errorf("got blocked %v, %d inputs", p.isBlocked(), len(p.inputs))
	}
	p.dropAll()
	if p.count() != 0 {
		t.Errorf("got %d inputs, want none", len(p.inputs))
	}
}

// The next execution inherits the inputs that the turn has not applied and that concern the instance.
func TestParkedInputs_notApplied_areInherited(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 2} {
		p := (*parkedInputs)(nil).add(parked(), &loading.Loader{})
		turn := &Turn{MostParked: most, Inputs: [][]history.Event{{{Kind: history.CancelRequested}}}}
		if alone := p.take(turn); alone != most || len(p.inputs) != (3-most)%3 {
			t.Errorf("got %d consumed, %d left", alone, len(p.inputs))
		}

		p.next()
		if left := p.inherited(); len(left) != 1 || left[0].Name != "b" {
			t.Errorf("got %v", left)
		}
		p.endTurn()
		if p.inherited() != nil {
			t.Error("inputs are left after the turn")
		}
	}
}
