package work

import (
	"testing"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// Any suspect whose process died while it ran alone may be a killer, so one of them stays in the batch and the others go
// back. A suspect that may only have been a neighbour stays as well, and runs first.
func TestLine_severalHaveDiedAlone_oneStays(t *testing.T) {
	t.Parallel()
	of := func(died int) *task {
		return &task{item: &provider.LockedWorkItem{}, suspicion: suspicion{died: died}}
	}
	l := &line{busy: 4}
	first, second, neighbour := of(intake.DiedAlone), of(intake.DiedAlone), of(intake.DiedAlone-1)
	firstTurn := l.join(first)
	if l.join(second) != nil || !second.suspicion.apart {
		t.Error("a second one that has died alone stays")
	}
	neighbourTurn := l.join(neighbour)
	if firstTurn == nil || neighbourTurn == nil || first.suspicion.apart || neighbour.suspicion.apart {
		t.Fatal("one that may stay goes back")
	}

	began := func(turn <-chan struct{}) bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
	if l.sent(1); began(firstTurn) || began(neighbourTurn) {
		t.Error("a suspect runs beside one whose result is not sent")
	}
	if l.sent(1); began(firstTurn) || !began(neighbourTurn) {
		t.Error("the neighbour is not the first to run")
	}
	if l.sent(1); !began(firstTurn) {
		t.Error("the other one does not run")
	}
}
