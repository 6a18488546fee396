package providertest

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A paused instance is listed as paused, with the requester, and the sweeper does not wake it (R25).
func pausedGroup() group {
	return group{"paused", []testCase{
		{name: "APausedInstanceIsShownAndListed", run: pausedIsShown},
		{name: "InputsThatAreParkedMeanwhileChangeNothingOfIt", run: pausedParks},
		{name: "NoBuildFindsWhatIsPausedAndBlocked", run: pausedAndBlocked},
		{name: "WhatIsPausedIsNotPending", run: pausedIsNotPending},
		{name: "APausedInstanceIsDeleted", run: pausedIsDeleted},
		{name: "AnOrderThatIsSentAgainIsOneMessage", run: orderIsOneMessage},
	}}
}

func suspended() history.Event {
	return history.Event{Kind: history.ExecutionSuspended, EventID: history.PauseIDPrefix + "1", RequestedBy: "ann", Message: "to look at it"}
}

func resumed() history.Event {
	return history.Event{Kind: history.ExecutionResumed, EventID: history.PauseIDPrefix + "2", RequestedBy: "bob"}
}

// wantPaused fails unless exactly these instances are listed as paused.
func (f *fixture) wantPaused(want ...string) {
	f.t.Helper()
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{Status: provider.StatusPaused})
	f.must(err)
	got := []string{}
	for i := range page.Instances {
		got = append(got, page.Instances[i].InstanceID)
		if page.Instances[i].Paused == nil {
			f.t.Errorf("%s is listed as paused, but has no pause", page.Instances[i].InstanceID)
		}
	}
	slices.Sort(got)
	f.wantEqual("paused", got, append([]string{}, want...))
}

func pausedIsShown(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	e.commit(suspended())
	in := f.instance("a")
	if in.Status != provider.StatusPaused || in.Paused == nil || in.Paused.By != "ann" || in.Paused.Message != "to look at it" || in.Paused.At.IsZero() {
		f.t.Errorf("status is %s: %+v", in.Status, in.Paused)
	}
	f.wantPaused("a")
	e.commit(resumed())
	if in := f.instance("a"); in.Status != provider.StatusRunning || in.Paused != nil {
		f.t.Errorf("after resume, status is %s: %+v", in.Status, in.Paused)
	}
	f.wantPaused()
}

func pausedParks(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	e.commit(suspended())
	before := f.instance("a")
	e.commit(history.Event{Kind: history.InputsParked, Inputs: []history.Event{completed(3)}})
	f.wantEqual("the instance", f.instance("a"), before)
	f.work(Queue)
	f.redispatch(e, at(1))
	f.wantWork(Queue, 4)
	f.wantPaused("a")
}

func pausedAndBlocked(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	e.commit(parked("b1"))
	e.commit(suspended())
	f.report("b2")
	f.wantBlocked()
	if in := f.instance("a"); in.Status != provider.StatusPaused || in.Diagnosis != nil || in.BlockedBy != "" {
		f.t.Errorf("status is %s in execution %q: %+v", in.Status, in.BlockedBy, in.Diagnosis)
	}
	e.commit(resumed())
	if in := f.instance("a"); in.Status != provider.StatusBlocked || in.Paused != nil || in.BlockedBy != "b1" {
		f.t.Errorf("after resume, status is %s in execution %q: %+v", in.Status, in.BlockedBy, in.Paused)
	}
	f.wantBlocked("a")
	f.wantPaused()
}

func pausedIsNotPending(f *fixture) {
	e := f.start("a")
	pending := func() (ids []string) {
		for in, err := range f.p.PendingInstances(f.ctx(), f.now().Add(1)) {
			f.must(err)
			for i := range in {
				ids = append(ids, in[i].InstanceID)
			}
		}
		return ids
	}
	e.commit(suspended())
	if found := pending(); len(found) > 0 {
		f.t.Errorf("pending instances: %v", found)
	}
	e.commit(resumed())
	f.wantStatus("a", provider.StatusPending)
}

func pausedIsDeleted(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted())
	e.commit(suspended())
	f.wantIs(f.p.DeleteInstance(f.ctx(), "a", false), provider.ErrNotEnded)
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	f.wantPaused()
}

func orderIsOneMessage(f *fixture) {
	in := f.quiet("a").instance
	order := provider.Message{
		V: provider.WireVersion, Kind: provider.MessageExecutionSuspended, InstanceID: "a", StartID: in.StartID, EventID: history.PauseIDPrefix + "1",
		Text: "to look at it", RequestedBy: "ann",
	}
	another := order
	another.Kind, another.EventID = provider.MessageExecutionResumed, history.PauseIDPrefix+"2"
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), order))
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), order, another))
	var got []provider.Message
	for _, m := range f.messages() {
		got = append(got, m.Message)
	}
	f.wantEqual("messages", got, []provider.Message{order, another})
}
