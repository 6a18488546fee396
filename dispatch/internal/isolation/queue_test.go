package isolation

import (
	"testing"

	"github.com/perdure/perdure/dispatch/internal/intake"
)

// If several suspects crashed their process while they ran alone, one of them stays in the batch and the others are
// released. A suspect that did not run alone also stays, and runs first.
func TestQueue_severalHaveCrashedAlone_keepsOne(t *testing.T) {
	t.Parallel()
	q := &Queue{busy: 4}
	neighbour := &Suspect{CrashCount: intake.CrashedAlone - 1}
	firstTurn, firstStays := q.Join(&Suspect{CrashCount: intake.CrashedAlone})
	if _, stays := q.Join(&Suspect{CrashCount: intake.CrashedAlone}); stays {
		t.Error("a second suspect that has crashed alone stays")
	}
	neighbourTurn, neighbourStays := q.Join(neighbour)
	if !firstStays || !neighbourStays {
		t.Fatal("a suspect that may stay is released")
	}

	started := func(turn <-chan struct{}) bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
	if q.Done(1); started(firstTurn) || started(neighbourTurn) {
		t.Error("a suspect runs concurrently with a record whose result is not sent")
	}
	if q.Done(1); started(firstTurn) || !started(neighbourTurn) {
		t.Error("the neighbour is not the first to run")
	}
	if q.Done(1); !started(firstTurn) {
		t.Error("the other suspect does not run")
	}
}
