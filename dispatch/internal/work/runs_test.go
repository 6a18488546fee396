package work

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A suspect waits for longer than its run, which a copy has meanwhile, and leaves: as it takes the run again it knows that, and begins nothing that is to
// begin once.
func TestARunThatIsTakenAgainKnowsWhoHadItMeanwhile(t *testing.T) {
	t.Parallel()
	m := &manager{options: &Options{}}
	r := &runs{manager: m}
	of := &task{item: &provider.LockedWorkItem{WorkItem: provider.WorkItem{Attempt: 1, WaitForCancellation: true}}}
	own := provider.Run{Attempt: 1, Token: "own", Until: time.Unix(30, 0)}
	r.took(of, own, &provider.RunClaim{Held: true})
	if how := of.endBefore(); how != history.OutcomeNeverStarted {
		t.Errorf("at first it has ended as %q", how)
	}
	r.took(of, own, &provider.RunClaim{Held: true})
	if of.run.before != nil {
		t.Error("its own run was before it")
	}
	r.took(of, own, &provider.RunClaim{Held: true, PreviousRun: &provider.Run{Attempt: 1, Token: "another"}})
	if how := of.endBefore(); how != history.OutcomeWorkerLost {
		t.Errorf("behind a copy it has ended as %q", how)
	}
}
