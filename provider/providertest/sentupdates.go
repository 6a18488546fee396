package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An orchestration sends updates to other instances, which the first update starts, and receives responses (R31).
func sentUpdates() group {
	return group{"sent updates", []testCase{
		{name: "AnUpdateIsSent", run: updateSent},
		{name: "WhatEndsAnUpdateAnswersWhoWaits", run: updateAnswered},
		{name: "WhatFindsNobodyIsRememberedAndAnswered", run: updateForNobody},
		{name: "AStartHasWhatItsMessageBrings", run: startBrings},
		{name: "WhatMayBeACopyBeginsNoNextLife", run: doubtfulStart},
	}}
}

func updateSent(f *fixture) {
	e := f.quiet("p")
	t := e.commit(
		turnStarted(),
		history.Event{Kind: history.UpdateSent, Name: "n", InstanceID: "c", Data: history.Payload(`1`)},
		history.Event{Kind: history.UpdateSent, Name: "n", InstanceID: "d", EventID: "u", Data: history.Payload(`2`), Orchestration: order, Version: v1, Input: history.Payload(`3`)},
	)
	ms := f.messages()
	if len(ms) != 2 {
		f.t.Fatalf("%d messages, want the updates", len(ms))
	}
	x := e.instance.ExecutionID
	want := map[string]provider.Message{
		"c": {
			V: provider.WireVersion, Kind: provider.MessageUpdateSent, InstanceID: "c", Name: "n", EventID: provider.StartID(x, 3), Data: history.Payload(`1`),
			SentAt: &t.Events[1].Time, Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
		},
		"d": {
			V: provider.WireVersion, Kind: provider.MessageUpdateSent, InstanceID: "d", Name: "n", EventID: "u", Data: history.Payload(`2`),
			SentAt: &t.Events[2].Time, Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 4}, Orchestration: order, Version: v1, Input: history.Payload(`3`),
		},
	}
	for i := range ms {
		f.wantEqual("update", ms[i].Message, want[ms[i].InstanceID])
	}
}

// told returns the response to p for its update for c.
func told(eventID int64, result history.Payload, failure *history.Failure) provider.Message {
	return provider.Message{
		V: provider.WireVersion, Kind: provider.MessageUpdateAnswered, InstanceID: "p", ExecutionID: "px", SourceEventID: eventID, ChildID: "c", Result: result, Error: failure,
	}
}

// waiter returns an event of p that waits for an update of c.
func waiter(eventID int64) history.Parent {
	return history.Parent{InstanceID: "p", ExecutionID: "px", EventID: eventID}
}

func updateAnswered(f *fixture) {
	e := f.quiet("c")
	first, joins := waiter(3), waiter(4)
	e.commit(
		turnStarted(),
		history.Event{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &first},
		history.Event{Kind: history.UpdateAccepted, Name: "n", EventID: "u", Data: history.Payload(`1`)},
		history.Event{Kind: history.UpdateCompleted, SourceEventID: 4, Name: "n", EventID: "u", Result: history.Payload(`7`), Callers: []history.Parent{first}},
		history.Event{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &joins},
	)
	f.wantAnswers(told(3, history.Payload(`7`), nil), told(4, history.Payload(`7`), nil))
	end := ended("1")
	end.Callers = []history.Parent{waiter(9)}
	e.commit(turnStarted(), end)
	f.wantAnswers(told(9, nil, provider.EndedFailure("c")))
}

func updateForNobody(f *fixture) {
	m := eventMessage("c", "px", 3)
	m.Kind, m.EventID = provider.MessageUpdateSent, "u"
	f.must(f.p.RejectEvents(f.ctx(), "", m))
	f.wantAnswers(told(3, nil, provider.NotFoundFailure("c")))
	f.wantRefusedEvents(provider.RejectedEvents{"px": {First: 3, Last: 3}})
}

func startBrings(f *fixture) {
	m := startMessageOf("c", "s1")
	who := waiter(3)
	m.InitialInputs = []history.Event{
		{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &who},
		{Kind: history.UpdateAccepted, Name: "n", EventID: "u", Data: history.Payload(`1`)},
	}
	e := f.create(m)
	f.create(m) // again, because the function died
	got := e.read().Start().Inputs
	if len(got) != 2 || got[0].EventID != "u" || *got[0].Parent != who || string(got[1].Data) != "1" || got[0].Time.IsZero() {
		f.t.Errorf("start contains %s", text(got))
	}
}

func doubtfulStart(f *fixture) {
	f.create(startMessageOf("c", "s1"))
	f.remove("c")
	copied := startMessageOf("c", "s2")
	copied.PossibleDuplicateSentAt = f.now().Add(-time.Hour)
	_, err := f.p.CreateOrchestration(f.ctx(), copied)
	f.wantIs(err, provider.ErrPurged)
	_, err = f.p.ReadInstance(f.ctx(), "c")
	f.wantIs(err, provider.ErrNotFound)
	later := startMessageOf("c", "s3")
	later.PossibleDuplicateSentAt = f.now().Add(time.Hour)
	f.create(later)
	in, err := f.p.ReadInstance(f.ctx(), "c")
	if since := f.now().Sub(in.PurgedAt); err != nil || since < -time.Minute || since > time.Hour {
		f.t.Errorf("previous incarnation was purged at %v (%v)", in.PurgedAt, err)
	}
}
