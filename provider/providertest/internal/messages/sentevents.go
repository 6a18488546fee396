package messages

import (
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// SentEvents tests that an orchestration raises events in other instances, and receives a response (R24).
func SentEvents() kit.Group {
	return kit.Group{Name: "sent events", Cases: []kit.Case{
		{Name: "EventIsSent", Run: eventSent},
		{Name: "EventsFollowTheStartOfTheirReceiver", Run: eventsInOrder},
		{Name: "EventsOfEndedExecutionAreSentAgain", Run: eventsOfEndedSender},
		{Name: "DeliveredEventReceivesResponse", Run: eventResponse},
		{Name: "EndRejectsUnconsumedEvents", Run: endRejectsUnconsumed},
		{Name: "UndeliverableMessageIsStoredAndRejected", Run: eventsForMissingInstance},
		{Name: "RejectedEventStaysRejectedInNextIncarnation", Run: rejectedAcrossIncarnations},
		{Name: "ExistingInstanceIsAConflict", Run: rejectionOfExistingInstance},
		{Name: "EndedInstanceReceivesNothing", Run: eventsForEndedInstance},
		{Name: "LatestSendersAreStored", Run: manySenders},
	}}
}

// sent returns an event for another instance.
func sent(to string, data string) history.Event {
	return history.Event{Kind: history.ExternalEventSent, Name: "n", InstanceID: to, Data: history.Payload(data)}
}

func eventSent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	t := e.Commit(kit.TurnStarted(), sent("c", `1`))
	ms := f.Messages()
	if len(ms) != 1 {
		f.T.Fatalf("got %d messages, want the event", len(ms))
	}
	x := e.Instance.ExecutionID
	f.WantEqual("event", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventSent, InstanceID: "c", Name: "n",
		EventID: provider.StartID(x, 3), Data: history.Payload(`1`),
		SentAt: &t.Events[1].Time, Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
	})
}

// eventsInOrder checks a turn that starts an instance and sends it more than a batch of events, with events for other
// instances in between.
func eventsInOrder(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	turn := []history.Event{kit.TurnStarted(), kit.Detached("c")}
	const events = 15
	for n := range events {
		turn = append(turn, sent("c", strconv.Itoa(n)), sent("d", strconv.Itoa(n)))
	}
	e.Commit(turn...)
	got := map[string][]string{}
	for _, m := range f.Messages() {
		got[m.InstanceID] = append(got[m.InstanceID], string(m.Kind)+string(m.Data))
	}
	for id, first := range map[string][]string{"c": {"start"}, "d": nil} {
		want := first
		for n := range events {
			want = append(want, fmt.Sprint("eventSent", n))
		}
		f.WantEqual("messages to "+id, got[id], want)
	}
}

func eventsOfEndedSender(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	t := e.Commit(kit.TurnStarted(), sent("c", `1`), kit.Ended("1"))
	f.Messages()
	_, err := f.Provider.RedispatchOrchestration(f.Ctx(), e.Read(), kit.Since(t.Watermark))
	f.Must(err)
	ms := f.Messages()
	if !f.Can(kit.VirtualTime) && len(ms) == 0 {
		return // the queue drops it as a duplicate of the previous send
	}
	for i := range ms {
		if ms[i].Kind != provider.MessageEventSent {
			f.T.Errorf("sent again: got %s", kit.Text(ms[i]))
		}
	}
}

// response returns the response of c to some events of p.
func response(failure *history.Failure, ids ...history.Range) provider.Message {
	return provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventAnswered, InstanceID: "p", ExecutionID: "px", ChildID: "c",
		SourceEventIDs: ids, Error: failure,
	}
}

// raisedEvent returns an event that p has raised in c.
func raisedEvent(eventID int64) history.Event {
	const executionID = "px"
	e := kit.Raised(provider.StartID(executionID, eventID), history.Payload(`1`))
	e.Parent = &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID}
	return e
}

func wantResponses(f *kit.Fixture, want ...provider.Message) {
	f.T.Helper()
	ms := f.Messages()
	if len(ms) != len(want) {
		f.T.Fatalf("sent %s, want %s", kit.Text(ms), kit.Text(want))
	}
	for i := range want {
		f.WantEqual("response", ms[i].Message, want[i])
	}
}

// eventResponse checks that consecutive events of one sender get one response, even if they are only stored.
func eventResponse(f *kit.Fixture) {
	e := f.StartWithoutWake("c")
	e.Commit(kit.TurnStarted(), raisedEvent(3), raisedEvent(4), raisedEvent(9), kit.Raised("a client's", nil))
	wantResponses(f, response(nil, history.Range{First: 3, Last: 4}, history.Range{First: 9, Last: 9}))
	parked := raisedEvent(12)
	parked.Time = f.StoredNow()
	e.Commit(history.Event{
		Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{parked}, Error: &history.Failure{Type: "T"},
	})
	wantResponses(f, response(nil, history.Range{First: 12, Last: 12}))
}

func endRejectsUnconsumed(f *kit.Fixture) {
	e := f.StartWithoutWake("c")
	end, unconsumed := kit.Ended("1"), raisedEvent(5)
	unconsumed.Data = nil
	end.Inputs = []history.Event{unconsumed}
	e.Commit(kit.TurnStarted(), raisedEvent(3), end)
	wantResponses(f, response(nil, history.Range{First: 3, Last: 3}), response(outputs.EndedFailure("c"), history.Range{
		First: 5, Last: 5,
	}))
}

func wantRefusedEvents(f *kit.Fixture, want provider.RejectedEvents) {
	f.T.Helper()
	got, err := f.Provider.ReadRejectedEvents(f.Ctx(), "c")
	f.Must(err)
	f.WantEqual("refused", got, want)
}

func eventsForMissingInstance(f *kit.Fixture) {
	wantRefusedEvents(f, nil)
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 3), kit.EventMessage("c", "px", 4)))
	wantResponses(f, response(outputs.NotFoundFailure("c"), history.Range{First: 3, Last: 4}))
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 8), kit.EventMessage("c", "qx", 2)))
	f.Messages()
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 3))) // a copy
	want := provider.RejectedEvents{"px": {First: 3, Last: 8}, "qx": {First: 2, Last: 2}}
	wantRefusedEvents(f, want)
	for id, has := range map[int64]bool{2: false, 3: true, 8: true, 9: false} {
		if m := kit.EventMessage("c", "px", id); want.Has(&m.Message) != has {
			f.T.Errorf("event %d is rejected: %v", id, !has)
		}
	}
	_, err := f.Provider.ReadInstance(f.Ctx(), "c")
	f.WantErrorIs(err, provider.ErrNotFound)
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	if len(page.Instances) > 0 {
		f.T.Errorf("rejected event is listed: %s", kit.Text(page))
	}
}

func rejectedAcrossIncarnations(f *kit.Fixture) {
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 3)))
	f.StartWithoutWake("c")
	f.DeleteInstance("c")
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 5))) // a tombstone accepts no events
	f.Create(kit.StartMessageOf("c", "s2"))
	wantRefusedEvents(f, provider.RejectedEvents{"px": {First: 3, Last: 5}})
	f.Messages()
	// the event was rejected before, so nothing is written
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 5)))
	f.Messages()
}

func rejectionOfExistingInstance(f *kit.Fixture) {
	e := f.StartWithoutWake("c")
	f.WantErrorIs(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "px", 3)), provider.ErrConflict)
	f.WantErrorIs(f.Provider.RejectEvents(f.Ctx(), "an earlier execution", kit.EventMessage("c", "px", 3)),
		provider.ErrConflict)
	wantRefusedEvents(f, nil)
	f.WantNothingSent()
	e.Commit(kit.TurnStarted())
}

func eventsForEndedInstance(f *kit.Fixture) {
	e := f.StartWithoutWake("c")
	e.Commit(kit.TurnStarted(), kit.Ended("1"))
	f.Must(f.Provider.RejectEvents(f.Ctx(), e.Instance.ExecutionID, kit.EventMessage("c", "px", 3)))
	wantResponses(f, response(outputs.EndedFailure("c"), history.Range{First: 3, Last: 3}))
	wantRefusedEvents(f, provider.RejectedEvents{"px": {First: 3, Last: 3}})
}

// manySenders rejects events of many senders, because the size of an item is limited.
func manySenders(f *kit.Fixture) {
	const senders, most = 300, 256
	var ms []*provider.InboxMessage
	for n := range senders {
		ms = append(ms, kit.EventMessage("c", fmt.Sprintf("x%03d", n), 3))
	}
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", ms...))
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "x044", 7))) // it is then the last rejected event
	f.Must(f.Provider.RejectEvents(f.Ctx(), "", kit.EventMessage("c", "new", 3)))
	refused, err := f.Provider.ReadRejectedEvents(f.Ctx(), "c")
	f.Must(err)
	if len(refused) != most || refused["x044"] != (history.Range{First: 3, Last: 7}) || refused["new"].First != 3 ||
		refused["x045"].First != 0 {
		f.T.Errorf("got %d stored senders: %s", len(refused), kit.Text(refused))
	}
	f.Messages()
}
