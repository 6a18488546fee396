package activities

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A suspect waits for longer than its run lease, which a copy acquires and releases. When the suspect acquires the
// lease again, it detects the other holder, and does not start an attempt that may start only once.
func TestRunLeases_copyHeldTheLeaseMeanwhile_isDetected(t *testing.T) {
	t.Parallel()
	r := newRunLeases(&supervisor{options: &Options{}}, nil)
	item := provider.WorkItem{Attempt: 1, WaitForCancellation: true}
	of := &task{item: &provider.LockedWorkItem{WorkItem: item}}
	held := provider.Run{Attempt: 1, Token: "own", Until: time.Unix(30, 0)}
	r.acquired(of, held, &provider.RunClaim{Held: true})
	if end := of.endBeforeStart(); end != history.OutcomeNeverStarted {
		t.Errorf("at first it has ended as %q", end)
	}
	r.acquired(of, held, &provider.RunClaim{Held: true})
	if previous, _ := of.run.Previous(); previous != nil {
		t.Error("its own lease counts as an earlier one")
	}
	r.acquired(of, held, &provider.RunClaim{Held: true, PreviousRun: &provider.Run{Attempt: 1, Token: "another"}})
	if end := of.endBeforeStart(); end != history.OutcomeWorkerLost {
		t.Errorf("after a copy it has ended as %q", end)
	}
}
