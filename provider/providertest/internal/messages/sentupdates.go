package messages

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// SentUpdates tests that an orchestration sends updates to other instances and receives responses. The first update can
// start the instance (R31).
func SentUpdates() kit.Group {
	return kit.Group{Name: "sent updates", Cases: []kit.Case{
		{Name: "UpdateIsSent", Run: updateSent},
		{Name: "EndedUpdateRespondsToWaitingCallers", Run: updateResponse},
		{Name: "UndeliverableMessageIsStoredAndRejected", Run: updateForMissingInstance},
		{Name: "StartHasFirstUpdate", Run: startHasUpdate},
		{Name: "PossibleCopyStartsNoNewIncarnation", Run: possiblyDuplicateStart},
	}}
}

func updateSent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	t := e.Commit(
		kit.TurnStarted(),
		history.Event{Kind: history.UpdateSent, Name: "n", InstanceID: "c", Data: history.Payload(`1`)},
		history.Event{
			Kind: history.UpdateSent, Name: "n", InstanceID: "d", EventID: "u", Data: history.Payload(`2`),
			Orchestration: kit.Order, Version: kit.V1, Input: history.Payload(`3`),
		},
	)
	ms := f.Messages()
	if len(ms) != 2 {
		f.T.Fatalf("got %d messages, want the updates", len(ms))
	}
	x := e.Instance.ExecutionID
	want := map[string]provider.Message{
		"c": {
			V: provider.WireVersion, Kind: provider.MessageUpdateSent, InstanceID: "c", Name: "n",
			EventID: provider.StartID(x, 3), Data: history.Payload(`1`),
			SentAt: &t.Events[1].Time, Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
		},
		"d": {
			V: provider.WireVersion, Kind: provider.MessageUpdateSent, InstanceID: "d", Name: "n", EventID: "u",
			Data:   history.Payload(`2`),
			SentAt: &t.Events[2].Time, Parent: &history.Parent{
				InstanceID: "p", ExecutionID: x, EventID: 4,
			}, Orchestration: kit.Order, Version: kit.V1, Input: history.Payload(`3`),
		},
	}
	for i := range ms {
		f.WantEqual("update", ms[i].Message, want[ms[i].InstanceID])
	}
}

// updateReply returns the response of c to an update of p.
func updateReply(eventID int64, result history.Payload, failure *history.Failure) provider.Message {
	return provider.Message{
		V: provider.WireVersion, Kind: provider.MessageUpdateAnswered, InstanceID: "p", ExecutionID: "px",
		SourceEventID: eventID, ChildID: "c", Result: result, Error: failure,
	}
}

// waiter returns an event of p that waits for an update of c.
func waiter(eventID int64) history.Parent {
	return history.Parent{InstanceID: "p", ExecutionID: "px", EventID: eventID}
}

func updateResponse(f *kit.Fixture) {
	e := f.StartWithoutWake("c")
	first, joins := waiter(3), waiter(4)
	e.Commit(
		kit.TurnStarted(),
		history.Event{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &first},
		history.Event{Kind: history.UpdateAccepted, Name: "n", EventID: "u", Data: history.Payload(`1`)},
		history.Event{
			Kind: history.UpdateCompleted, SourceEventID: 4, Name: "n", EventID: "u", Result: history.Payload(`7`),
			Callers: []history.Parent{first},
		},
		history.Event{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &joins},
	)
	wantResponses(f, updateReply(3, history.Payload(`7`), nil), updateReply(4, history.Payload(`7`), nil))
	end := kit.Ended("1")
	end.Callers = []history.Parent{waiter(9)}
	e.Commit(kit.TurnStarted(), end)
	wantResponses(f, updateReply(9, nil, outputs.EndedFailure("c")))
}

func updateForMissingInstance(f *kit.Fixture) {
	m := kit.EventMessage("c", "px", 3)
	m.Kind, m.EventID = provider.MessageUpdateSent, "u"
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", m))
	wantResponses(f, updateReply(3, nil, outputs.NotFoundFailure("c")))
	wantRefusedEvents(f, provider.RejectedEvents{"px": {First: 3, Last: 3}})
}

func startHasUpdate(f *kit.Fixture) {
	m := kit.StartMessageOf("c", "s1")
	who := waiter(3)
	m.InitialInputs = []history.Event{
		{Kind: history.UpdateAwaited, Name: "n", EventID: "u", Parent: &who},
		{Kind: history.UpdateAccepted, Name: "n", EventID: "u", Data: history.Payload(`1`)},
	}
	e := f.Create(m)
	f.Create(m) // repeated, because the function died
	got := e.Read().Start().Inputs
	if len(got) != 2 || got[0].EventID != "u" || *got[0].Parent != who || string(got[1].Data) != "1" ||
		got[0].Time.IsZero() {
		f.T.Errorf("start contains %s", kit.Text(got))
	}
}

func possiblyDuplicateStart(f *kit.Fixture) {
	f.Create(kit.StartMessageOf("c", "s1"))
	f.DeleteInstance("c")
	copied := kit.StartMessageOf("c", "s2")
	copied.PossibleDuplicateSentAt = f.StoredNow().Add(-time.Hour)
	_, err := f.Provider.CreateOrchestration(f.Ctx(), copied)
	f.WantErrorIs(err, provider.ErrPurged)
	_, err = f.Provider.ReadInstance(f.Ctx(), "c")
	f.WantErrorIs(err, provider.ErrNotFound)
	later := kit.StartMessageOf("c", "s3")
	later.PossibleDuplicateSentAt = f.StoredNow().Add(time.Hour)
	f.Create(later)
	in, err := f.Provider.ReadInstance(f.Ctx(), "c")
	if since := f.StoredNow().Sub(in.PurgedAt); err != nil || since < -time.Minute || since > time.Hour {
		f.T.Errorf("previous incarnation was purged at %v (%v)", in.PurgedAt, err)
	}
}
