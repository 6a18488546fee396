package providertest

import (
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// An orchestration raises events in other instances, and receives a response (R24).
func sentEvents() group {
	return group{"sent events", []testCase{
		{name: "AnEventIsSent", run: eventSent},
		{name: "EventsFollowWhatStartsTheirReceiver", run: eventsInOrder},
		{name: "WhatAnEndedExecutionHasSentIsSentAgain", run: eventsOutliveTheirSender},
		{name: "ADeliveredEventIsAnswered", run: eventsAnswered},
		{name: "AnEndAnswersWhatItsCodeHasNotTaken", run: endAnswersUntaken},
		{name: "WhatFindsNobodyIsRememberedAndAnswered", run: eventsForNobody},
		{name: "WhatIsRefusedStaysRefusedInTheNextLife", run: refusedAcrossLives},
		{name: "AnInstanceThatIsThereIsAConflict", run: refusalBesideTheLiving},
		{name: "WhatIsOverTakesNothing", run: eventsForTheDead},
		{name: "TheSendersOfLastAreKept", run: manySenders},
	}}
}

// sent returns an event for another instance.
func sent(to string, data string) history.Event {
	return history.Event{Kind: history.ExternalEventSent, Name: "n", InstanceID: to, Data: history.Payload(data)}
}

// eventMessage returns an event of the sender p.
func eventMessage(to, executionID string, eventID int64) *provider.InboxMessage {
	return &provider.InboxMessage{Message: provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventSent, InstanceID: to, Name: "n", EventID: provider.StartID(executionID, eventID),
		Parent: &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID},
	}}
}

func eventSent(f *fixture) {
	e := f.quiet("p")
	t := e.commit(turnStarted(), sent("c", `1`))
	ms := f.messages()
	if len(ms) != 1 {
		f.t.Fatalf("%d messages, want the event", len(ms))
	}
	x := e.instance.ExecutionID
	f.wantEqual("event", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventSent, InstanceID: "c", Name: "n", EventID: provider.StartID(x, 3), Data: history.Payload(`1`),
		SentAt: &t.Events[1].Time, Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
	})
}

// eventsInOrder: a turn starts an instance and sends it more than a batch of events, with events for others in between.
func eventsInOrder(f *fixture) {
	e := f.quiet("p")
	turn := []history.Event{turnStarted(), detached("c")}
	const events = 15
	for n := range events {
		turn = append(turn, sent("c", strconv.Itoa(n)), sent("d", strconv.Itoa(n)))
	}
	e.commit(turn...)
	got := map[string][]string{}
	for _, m := range f.messages() {
		got[m.InstanceID] = append(got[m.InstanceID], string(m.Kind)+string(m.Data))
	}
	for id, first := range map[string][]string{"c": {"start"}, "d": nil} {
		want := first
		for n := range events {
			want = append(want, fmt.Sprint("eventSent", n))
		}
		f.wantEqual("what "+id+" receives", got[id], want)
	}
}

func eventsOutliveTheirSender(f *fixture) {
	e := f.quiet("p")
	t := e.commit(turnStarted(), sent("c", `1`), ended("1"))
	f.messages()
	_, err := f.p.RedispatchOrchestration(f.ctx(), e.read(), since(t.Watermark))
	f.must(err)
	ms := f.messages()
	if !f.can(VirtualTime) && len(ms) == 0 {
		return // the queue takes it for a repetition of the previous send
	}
	for i := range ms {
		if ms[i].Kind != provider.MessageEventSent {
			f.t.Errorf("sent again: %s", text(ms[i]))
		}
	}
}

// answer returns the response to p for some of its events for c.
func answer(failure *history.Failure, ids ...history.Range) provider.Message {
	return provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventAnswered, InstanceID: "p", ExecutionID: "px", ChildID: "c", SourceEventIDs: ids, Error: failure,
	}
}

// heard returns an event that p has raised in c.
func heard(eventID int64) history.Event {
	const executionID = "px"
	e := raised(provider.StartID(executionID, eventID), history.Payload(`1`))
	e.Parent = &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID}
	return e
}

func (f *fixture) wantAnswers(want ...provider.Message) {
	f.t.Helper()
	ms := f.messages()
	if len(ms) != len(want) {
		f.t.Fatalf("sent %s, want %s", text(ms), text(want))
	}
	for i := range want {
		f.wantEqual("answer", ms[i].Message, want[i])
	}
}

// eventsAnswered: consecutive events of one sender get one response, even if they are only stored.
func eventsAnswered(f *fixture) {
	e := f.quiet("c")
	e.commit(turnStarted(), heard(3), heard(4), heard(9), raised("a client's", nil))
	f.wantAnswers(answer(nil, history.Range{First: 3, Last: 4}, history.Range{First: 9, Last: 9}))
	parked := heard(12)
	parked.Time = f.now()
	e.commit(history.Event{Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{parked}, Error: &history.Failure{Type: "T"}})
	f.wantAnswers(answer(nil, history.Range{First: 12, Last: 12}))
}

func endAnswersUntaken(f *fixture) {
	e := f.quiet("c")
	end, untaken := ended("1"), heard(5)
	untaken.Data = nil
	end.Inputs = []history.Event{untaken}
	e.commit(turnStarted(), heard(3), end)
	f.wantAnswers(answer(nil, history.Range{First: 3, Last: 3}), answer(provider.EndedFailure("c"), history.Range{First: 5, Last: 5}))
}

func (f *fixture) wantRefusedEvents(want provider.RejectedEvents) {
	f.t.Helper()
	got, err := f.p.ReadRejectedEvents(f.ctx(), "c")
	f.must(err)
	f.wantEqual("refused", got, want)
}

func eventsForNobody(f *fixture) {
	f.wantRefusedEvents(nil)
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 3), eventMessage("c", "px", 4)))
	f.wantAnswers(answer(provider.NotFoundFailure("c"), history.Range{First: 3, Last: 4}))
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 8), eventMessage("c", "qx", 2)))
	f.messages()
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 3))) // a copy
	want := provider.RejectedEvents{"px": {First: 3, Last: 8}, "qx": {First: 2, Last: 2}}
	f.wantRefusedEvents(want)
	for id, has := range map[int64]bool{2: false, 3: true, 8: true, 9: false} {
		if m := eventMessage("c", "px", id); want.Has(&m.Message) != has {
			f.t.Errorf("event %d is rejected: %v", id, !has)
		}
	}
	_, err := f.p.ReadInstance(f.ctx(), "c")
	f.wantIs(err, provider.ErrNotFound)
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{})
	f.must(err)
	if len(page.Instances) > 0 {
		f.t.Errorf("rejected event is listed: %s", text(page))
	}
}

func refusedAcrossLives(f *fixture) {
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 3)))
	f.quiet("c")
	f.remove("c")
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 5))) // a tombstone accepts no events
	f.create(startMessageOf("c", "s2"))
	f.wantRefusedEvents(provider.RejectedEvents{"px": {First: 3, Last: 5}})
	f.messages()
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 5))) // it was rejected before, so nothing is written
	f.messages()
}

func refusalBesideTheLiving(f *fixture) {
	e := f.quiet("c")
	f.wantIs(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "px", 3)), provider.ErrConflict)
	f.wantIs(f.p.RejectEvents(f.ctx(), "an earlier execution", eventMessage("c", "px", 3)), provider.ErrConflict)
	f.wantRefusedEvents(nil)
	f.wantNothingSent()
	e.commit(turnStarted())
}

func eventsForTheDead(f *fixture) {
	e := f.quiet("c")
	e.commit(turnStarted(), ended("1"))
	f.must(f.p.RejectEvents(f.ctx(), e.instance.ExecutionID, eventMessage("c", "px", 3)))
	f.wantAnswers(answer(provider.EndedFailure("c"), history.Range{First: 3, Last: 3}))
	f.wantRefusedEvents(provider.RejectedEvents{"px": {First: 3, Last: 3}})
}

// manySenders: the size of an item is limited.
func manySenders(f *fixture) {
	const senders, most = 300, 256
	var ms []*provider.InboxMessage
	for n := range senders {
		ms = append(ms, eventMessage("c", fmt.Sprintf("x%03d", n), 3))
	}
	f.must(f.p.RejectEvents(f.ctx(), "", ms...))
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "x044", 7))) // it is the last one then
	f.must(f.p.RejectEvents(f.ctx(), "", eventMessage("c", "new", 3)))
	refused, err := f.p.ReadRejectedEvents(f.ctx(), "c")
	f.must(err)
	if len(refused) != most || refused["x044"] != (history.Range{First: 3, Last: 7}) || refused["new"].First != 3 || refused["x045"].First != 0 {
		f.t.Errorf("%d senders stored: %s", len(refused), text(refused))
	}
	f.messages()
}
