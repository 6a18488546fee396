package turns

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Paused tests that a paused instance is listed as paused, with the requester, and that the sweeper does not wake it
// (R25).
func Paused() kit.Group {
	return kit.Group{Name: "paused", Cases: []kit.Case{
		{Name: "APausedInstanceIsShownAndListed", Run: pausedIsShown},
		{Name: "InputsThatAreParkedMeanwhileChangeNothingOfIt", Run: pausedParks},
		{Name: "NoBuildFindsWhatIsPausedAndBlocked", Run: pausedAndBlocked},
		{Name: "WhatIsPausedIsNotPending", Run: pausedIsNotPending},
		{Name: "APausedInstanceIsDeleted", Run: pausedIsDeleted},
		{Name: "AnOrderThatIsSentAgainIsOneMessage", Run: orderIsOneMessage},
	}}
}

func suspended() history.Event {
	return history.Event{
		Kind: history.ExecutionSuspended, EventID: history.PauseIDPrefix + "1", RequestedBy: "ann",
		Message: "to look at it",
	}
}

func resumed() history.Event {
	return history.Event{Kind: history.ExecutionResumed, EventID: history.PauseIDPrefix + "2", RequestedBy: "bob"}
}

// wantPaused fails if the instances that are listed as paused are not exactly these.
func wantPaused(f *kit.Fixture, want ...string) {
	f.T.Helper()
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{Status: provider.StatusPaused})
	f.Must(err)
	got := []string{}
	for i := range page.Instances {
		got = append(got, page.Instances[i].InstanceID)
		if page.Instances[i].Paused == nil {
			f.T.Errorf("%s is listed as paused, but has no pause", page.Instances[i].InstanceID)
		}
	}
	slices.Sort(got)
	f.WantEqual("paused", got, append([]string{}, want...))
}

func pausedIsShown(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(suspended())
	in := f.Instance("a")
	if in.Status != provider.StatusPaused || in.Paused == nil || in.Paused.By != "ann" ||
		in.Paused.Message != "to look at it" || in.Paused.At.IsZero() {
		f.T.Errorf("status is %s: %+v", in.Status, in.Paused)
	}
	wantPaused(f, "a")
	e.Commit(resumed())
	if in := f.Instance("a"); in.Status != provider.StatusRunning || in.Paused != nil {
		f.T.Errorf("after resume, status is %s: %+v", in.Status, in.Paused)
	}
	wantPaused(f)
}

func pausedParks(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	e.Commit(suspended())
	before := f.Instance("a")
	e.Commit(history.Event{Kind: history.InputsParked, Inputs: []history.Event{kit.Completed(3)}})
	f.WantEqual("the instance", f.Instance("a"), before)
	f.Work(kit.Queue)
	f.Redispatch(e, kit.At(1))
	f.WantWork(kit.Queue, 4)
	wantPaused(f, "a")
}

func pausedAndBlocked(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.Parked("b1"))
	e.Commit(suspended())
	f.ReportBuilds("b2")
	f.WantBlocked()
	if in := f.Instance("a"); in.Status != provider.StatusPaused || in.Diagnosis != nil || in.BlockedBy != "" {
		f.T.Errorf("status is %s in execution %q: %+v", in.Status, in.BlockedBy, in.Diagnosis)
	}
	e.Commit(resumed())
	if in := f.Instance("a"); in.Status != provider.StatusBlocked || in.Paused != nil || in.BlockedBy != "b1" {
		f.T.Errorf("after resume, status is %s in execution %q: %+v", in.Status, in.BlockedBy, in.Paused)
	}
	f.WantBlocked("a")
	wantPaused(f)
}

func pausedIsNotPending(f *kit.Fixture) {
	e := f.Start("a")
	pending := func() (ids []string) {
		for in, err := range f.Provider.PendingInstances(f.Ctx(), f.StoredNow().Add(1)) {
			f.Must(err)
			for i := range in {
				ids = append(ids, in[i].InstanceID)
			}
		}
		return ids
	}
	e.Commit(suspended())
	if found := pending(); len(found) > 0 {
		f.T.Errorf("pending instances: %v", found)
	}
	e.Commit(resumed())
	f.WantStatus("a", provider.StatusPending)
}

func pausedIsDeleted(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	e.Commit(suspended())
	f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "a", false), provider.ErrNotEnded)
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	wantPaused(f)
}

func orderIsOneMessage(f *kit.Fixture) {
	in := f.StartWithoutWake("a").Instance
	order := provider.Message{
		V: provider.WireVersion, Kind: provider.MessageExecutionSuspended, InstanceID: "a", StartID: in.StartID,
		EventID: history.PauseIDPrefix + "1",
		Text:    "to look at it", RequestedBy: "ann",
	}
	another := order
	another.Kind, another.EventID = provider.MessageExecutionResumed, history.PauseIDPrefix+"2"
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), order))
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), order, another))
	var got []provider.Message
	for _, m := range f.Messages() {
		got = append(got, m.Message)
	}
	f.WantEqual("messages", got, []provider.Message{order, another})
}
