package turns

import (
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Blocked tests that an instance whose code cannot continue is blocked, with the reason, until another build reports
// (R18).
func Blocked() kit.Group {
	return kit.Group{Name: "blocked", Cases: []kit.Case{
		{Name: "ParkedInputsBlockTheInstance", Run: parkedBlocks},
		{Name: "AnotherBuildFindsInstance", Run: anotherBuildFinds},
		{Name: "OlderBuildThatReportsAgainFindsInstance", Run: rollbackFinds},
		{Name: "NextTurnUnblocks", Run: turnUnblocks},
		{Name: "BlockedInstanceIsNotWrittenAgain", Run: staysBlocked},
		{Name: "ParkedOutcomeIsSettled", Run: parkedIsSettled},
		{Name: "UnwrittenBlockIsWritten", Run: blockRepaired, Needs: []kit.Capability{kit.Faults}},
	}}
}

func parkedBlocks(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.Parked("b1", kit.Completed(3)))
	in := f.Instance("a")
	if in.Status != provider.StatusBlocked {
		f.T.Errorf("got status %s", in.Status)
	}
	f.WantEqual("diagnosis", in.Diagnosis, kit.Parked("").Error)
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{Status: provider.StatusBlocked})
	f.Must(err)
	if len(page.Instances) != 1 {
		f.T.Errorf("%d instances are listed as blocked, want 1", len(page.Instances))
	}
	f.WantBlocked()
}

func anotherBuildFinds(f *kit.Fixture) {
	f.ReportBuilds("b1")
	f.Start("well").Commit(kit.TurnStarted())
	f.Start("a").Commit(kit.Parked("b1"))
	f.WantBlocked()
	f.ReportBuilds("b2")
	f.WantBlocked("a")
}

func rollbackFinds(f *kit.Fixture) {
	f.ReportBuilds("b1", "b2")
	f.Start("a").Commit(kit.Parked("b2"))
	f.WantBlocked()
	f.ReportBuilds("b1")
	f.WantBlocked("a")
}

func turnUnblocks(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.Parked("b1"))
	f.ReportBuilds("b2")
	t := e.Turn(kit.TurnStarted(), kit.Completed(3))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	e.Follow(t)
	if in := f.Instance("a"); in.Status != provider.StatusRunning || in.Diagnosis != nil {
		f.T.Errorf("got status %s: %+v", in.Status, in.Diagnosis)
	}
	f.WantBlocked()
	e.Commit(kit.Parked("b1"))
	e.ContinueAs("x2", kit.TurnStarted())
	f.WantBlocked()
	f.WantStatus("a", provider.StatusRunning)
}

func staysBlocked(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	e.Commit(kit.Parked("b1"))
	before := f.Instance("a")
	f.Advance(10 * time.Millisecond)
	t := e.Turn(kit.Parked("b1", kit.Completed(3)))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	e.Follow(t)
	f.WantEqual("the instance", f.Instance("a"), before)
	f.WantBlocked()
	f.ReportBuilds("b2")
	f.WantBlocked("a")
}

func parkedIsSettled(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	e.Commit(kit.Parked("b1", kit.Completed(3)))
	f.Work(kit.Queue)
	f.Redispatch(e, kit.At(1))
	f.WantWork(kit.Queue, 4)
	f.WantStatus("a", provider.StatusBlocked)
}

func blockRepaired(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.Parked("b1"))); err == nil {
		f.T.Error("no error although the status was not written")
	}
	f.Redispatch(e, kit.At(2))
	f.WantStatus("a", provider.StatusBlocked)
	f.ReportBuilds("b2")
	f.WantBlocked("a")
}
