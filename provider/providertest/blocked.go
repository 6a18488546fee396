package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An instance whose code cannot continue is blocked, with the reason, until another build reports (R18).
func blocked() group {
	return group{"blocked", []testCase{
		{name: "ParkedInputsBlockTheInstance", run: parkedBlocks},
		{name: "AnotherBuildFindsIt", run: anotherBuildFinds},
		{name: "AnOlderBuildThatReportsAgainFindsIt", run: rollbackFinds},
		{name: "TheTurnThatFollowsUnblocks", run: turnUnblocks},
		{name: "WhatStaysBlockedIsNotWrittenAgain", run: staysBlocked},
		{name: "WhatIsParkedIsSettled", run: parkedIsSettled},
		{name: "ABlockThatWasNotWrittenIsWritten", run: blockRepaired, needs: []Capability{Faults}},
	}}
}

// parked is the event that blocks an instance in a build.
func parked(build string, inputs ...history.Event) history.Event {
	return history.Event{Kind: history.InputsParked, BuildID: build, Inputs: inputs, Error: &history.Failure{
		Type: history.TypeNondeterminism, Message: "m", Expected: "a", Got: "b", EventID: 3,
	}}
}

func (f *fixture) report(builds ...string) {
	f.t.Helper()
	for _, id := range builds {
		f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: id, Orchestrations: map[string][]string{order: {v1}}}))
		f.Advance(10 * time.Millisecond) // times are stored in milliseconds
	}
}

// wantBlocked fails unless exactly these instances are blocked in another build than the last to report.
func (f *fixture) wantBlocked(want ...string) {
	f.t.Helper()
	got := []string{}
	for in, err := range f.p.BlockedInstances(f.ctx()) {
		f.must(err)
		for i := range in {
			got = append(got, in[i].InstanceID)
		}
	}
	f.wantEqual("blocked in another build", got, append([]string{}, want...))
}

func parkedBlocks(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	e.commit(parked("b1", completed(3)))
	in := f.instance("a")
	if in.Status != provider.StatusBlocked {
		f.t.Errorf("status is %s", in.Status)
	}
	f.wantEqual("diagnosis", in.Diagnosis, parked("").Error)
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{Status: provider.StatusBlocked})
	f.must(err)
	if len(page.Instances) != 1 {
		f.t.Errorf("%d instances are listed as blocked, want 1", len(page.Instances))
	}
	f.wantBlocked()
}

func anotherBuildFinds(f *fixture) {
	f.report("b1")
	f.start("well").commit(turnStarted())
	f.start("a").commit(parked("b1"))
	f.wantBlocked()
	f.report("b2")
	f.wantBlocked("a")
}

func rollbackFinds(f *fixture) {
	f.report("b1", "b2")
	f.start("a").commit(parked("b2"))
	f.wantBlocked()
	f.report("b1")
	f.wantBlocked("a")
}

func turnUnblocks(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	e.commit(parked("b1"))
	f.report("b2")
	t := e.turn(turnStarted(), completed(3))
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	e.follow(t)
	if in := f.instance("a"); in.Status != provider.StatusRunning || in.Diagnosis != nil {
		f.t.Errorf("status is %s: %+v", in.Status, in.Diagnosis)
	}
	f.wantBlocked()
	e.commit(parked("b1"))
	e.continueAs("x2", turnStarted())
	f.wantBlocked()
	f.wantStatus("a", provider.StatusRunning)
}

func staysBlocked(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted())
	e.commit(parked("b1"))
	before := f.instance("a")
	f.Advance(10 * time.Millisecond)
	t := e.turn(parked("b1", completed(3)))
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	e.follow(t)
	f.wantEqual("the instance", f.instance("a"), before)
	f.wantBlocked()
	f.report("b2")
	f.wantBlocked("a")
}

func parkedIsSettled(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	e.commit(parked("b1", completed(3)))
	f.work(Queue)
	f.redispatch(e, at(1))
	f.wantWork(Queue, 4)
	f.wantStatus("a", provider.StatusBlocked)
}

func blockRepaired(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted())
	f.Fail(Fault{Operation: Update, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(parked("b1"))); err == nil {
		f.t.Error("no error although the status was not written")
	}
	f.redispatch(e, at(2))
	f.wantStatus("a", provider.StatusBlocked)
	f.report("b2")
	f.wantBlocked("a")
}
