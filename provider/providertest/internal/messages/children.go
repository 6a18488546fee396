package messages

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Children tests that orchestrations start other orchestrations by message, and receive their outcomes (R9, R10).
func Children() kit.Group {
	return kit.Group{Name: "children", Cases: []kit.Case{
		{Name: "StartOfChildIsSent", Run: childStartSent},
		{Name: "StartMessageCreatesInstance", Run: startMessage},
		{Name: "StartMessageCountsAsConsumed", Run: startConsumed},
		{Name: "RepeatedStartReturnsTheSameInstance", Run: startRepeated},
		{Name: "RepeatedStartReturnsCurrentExecution", Run: startRepeatedLater},
		{Name: "AnotherStartIsRejected", Run: startRefused},
		{Name: "RejectedStartReceivesResponse", Run: rejectionResponse},
		{Name: "RejectedDetachedStartSendsNoResponse", Run: refusalOfDetached},
		{Name: "ManyRejectedStartsReceiveResponses", Run: manyRefusals},
		{Name: "ParentReceivesResponse", Run: parentNotified},
		{Name: "ParentReceivesOutcomeBeforeStatus", Run: parentNotifiedFirst, Needs: []kit.Capability{kit.Faults}},
		{Name: "RepeatedResponseToParent", Run: parentNotifiedAgain, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "DelayedStartCreatesTimer", Run: delayedMessage},
		{Name: "DelayedStartIsNotWokenEarly", Run: delayedStart},
		{
			Name: "LostResponseOfStartMessageIsTheSameInstance", Run: lostStartMessage,
			Needs: []kit.Capability{kit.Faults},
		},
	}}
}

func childStartSent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	c := kit.Child()
	c.Version = kit.V1
	e.Commit(kit.TurnStarted(), c)
	ms := f.Messages()
	if len(ms) != 1 {
		f.T.Fatalf("got %d messages, want a start", len(ms))
	}
	f.WantEqual("start", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageStart, InstanceID: "c", Name: kit.Refund, Version: kit.V1,
		Input: c.Input, StartID: c.StartID,
		Parent: &history.Parent{InstanceID: "p", ExecutionID: e.Instance.ExecutionID, EventID: 3},
	})
}

func startMessage(f *kit.Fixture) {
	m := kit.StartMessageOf("c", "s1")
	m.Tags = map[string]string{"k": "v"}
	e := f.Create(m)
	in := e.Instance
	f.WantEqual("instance", in, provider.Instance{
		InstanceID: "c", ExecutionID: e.Head.ExecutionID, ExecutionNumber: 1, Name: kit.Refund, Version: kit.V1,
		Status: provider.StatusPending, StartID: "s1",
		CreatedAt: in.CreatedAt, UpdatedAt: in.CreatedAt, Parent: m.Parent, Tags: m.Tags,
	})
	f.WantEqual("history", e.History(), []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: in.CreatedAt, Name: kit.Refund, Version: kit.V1,
		Input: m.Input, StartID: "s1", Number: 1,
		Tags: m.Tags, Parent: m.Parent,
	}})
}

func startConsumed(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	if e.Head.Watermark != kit.At(9) || e.Read().Head != e.Head {
		f.T.Errorf("got head %+v, read %+v, want the position of the start as watermark", e.Head, e.Read().Head)
	}
	f.Redispatch(e, kit.At(9))
	f.WantStatus("c", provider.StatusPending) // no turn has run
}

func startRepeated(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	again := kit.StartMessageOf("c", "s1")
	again.Position = kit.At(20)
	if second := f.Create(again); second.Head != e.Head {
		f.T.Errorf("%+v, then %+v", e.Head, second.Head)
	}
}

func startRepeatedLater(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	next := e.ContinueAs("x2", kit.TurnStarted())
	if again := f.Create(kit.StartMessageOf("c", "s1")); again.Head != next.Head {
		f.T.Errorf("got head %+v, want the current %+v", again.Head, next.Head)
	}
	if f.Instance("c").ExecutionID != "x2" {
		f.T.Error("the instance was created again")
	}
}

func startRefused(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	other := kit.StartMessageOf("c", "s2")
	other.Input = history.Payload(`"other"`)
	_, err := f.Provider.CreateOrchestration(f.Ctx(), other)
	f.WantErrorIs(err, provider.ErrAlreadyExists)
	f.Start("by a client")
	_, err = f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("by a client", "s3"))
	f.WantErrorIs(err, provider.ErrAlreadyExists)
	f.WantEqual("input", e.Read().Start().Input, history.Payload(`7`))
}

func rejectionResponse(f *kit.Fixture) {
	f.StartWithoutWake("c")
	m := kit.StartMessageOf("c", "s2")
	for range 2 { // repeated, because the function died before it deleted the message
		f.Must(f.Provider.RejectStart(f.Ctx(), m))
	}
	ms := f.Messages()
	if len(ms) == 0 {
		f.T.Fatal("no message to the parent")
	}
	got := ms[0].Message
	if got.InstanceID != "p" || got.ExecutionID != "px" || got.SourceEventID != 5 || got.ChildID != "c" ||
		got.Kind != provider.MessageChildOutcome {
		f.T.Errorf("messages to the parent: got %s", kit.Text(got))
	}
	if got.Error == nil || got.Error.Type != history.TypeAlreadyExists || !got.Error.NonRetryable {
		f.T.Errorf("got failure %s, want a non-retryable already_exists", kit.Text(got.Error))
	}
	f.WantStatus("c", provider.StatusPending)
}

func refusalOfDetached(f *kit.Fixture) {
	f.StartWithoutWake("c")
	m := kit.StartMessageOf("c", "s2")
	m.Parent, m.Detached = nil, true
	f.Must(f.Provider.RejectStart(f.Ctx(), m))
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("messages to the parent: got %s", kit.Text(ms))
	}
}

// manyRefusals checks that an instance responds to all rejected starts, although it stores only a limited number of
// them.
func manyRefusals(f *kit.Fixture) {
	f.StartWithoutWake("c")
	const many = 300
	for i := range many {
		m := kit.StartMessageOf("c", kit.Text(i))
		m.Parent.EventID = int64(i + 1)
		f.Must(f.Provider.RejectStart(f.Ctx(), m))
	}
	if n := len(f.Messages()); n != many {
		f.T.Errorf("got %d messages to parents, want %d", n, many)
	}
}

func parentNotified(f *kit.Fixture) {
	failure := &history.Failure{Type: "Declined", Message: "no money"}
	for id, c := range map[string]struct {
		end    history.Event
		result string
		err    *history.Failure
	}{
		"completed": {end: kit.Ended(`"paid"`), result: `"paid"`},
		"failed":    {end: history.Event{Kind: history.OrchestrationFailed, Error: failure}, err: failure},
		"terminated": {end: history.Event{
			Kind: history.OrchestrationTerminated, Message: "why",
		}, err: &history.Failure{Type: history.TypeTerminated, Message: "why", NonRetryable: true}},
	} {
		m := kit.StartMessageOf(id, "start of "+id)
		m.Parent.InstanceID, m.Parent.ExecutionID = "parent of "+id, "execution of the parent of "+id
		e := f.Create(m)
		e.Commit(kit.TurnStarted(), c.end)
		ms := f.Messages()
		if len(ms) != 1 {
			f.T.Fatalf("%s: got %d messages, want one for the parent", id, len(ms))
		}
		want := provider.Message{
			V: provider.WireVersion, Kind: provider.MessageChildOutcome, InstanceID: m.Parent.InstanceID,
			ExecutionID: m.Parent.ExecutionID, SourceEventID: 5, ChildID: id,
			Result: history.Payload(c.result), Error: c.err,
		}
		if c.result == "" {
			want.Result = nil
		}
		f.WantEqual(id, ms[0].Message, want)
	}
}

func parentNotifiedFirst(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), kit.Ended(`1`))); err == nil {
		f.T.Error("no error although the message to the parent was not sent")
	}
	f.WantStatus("c", provider.StatusPending)
	f.Redispatch(e, kit.At(10))
	f.WantStatus("c", provider.StatusCompleted)
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("got %d messages for the parent, want 1", len(ms))
	}
}

func parentNotifiedAgain(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	e.Commit(kit.TurnStarted())
	next := e.Continuing("x2")
	next.Next.Start.Parent = &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), next)
	f.Must(err)
	last := f.ExecutionAfter(next)
	t := last.Turn(kit.TurnStarted(), kit.Ended(`1`))
	_, err = f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.Messages()
	f.Advance(6 * time.Minute) // otherwise a queue drops it as a duplicate
	f.Redispatch(last, t.Watermark)
	if ms := f.Messages(); len(ms) != 1 || ms[0].InstanceID != "p" {
		f.T.Errorf("sent again: got %s", kit.Text(ms))
	}
}

func delayedMessage(f *kit.Fixture) {
	m := kit.StartMessageOf("c", "s1")
	due := f.StoredNow().Add(-time.Second)
	m.StartAt = &due
	e := f.Create(m)
	ts := f.Timers()
	if len(ts) != 1 || ts[0].TimerID != 1 || ts[0].ExecutionID != e.Head.ExecutionID || !ts[0].FireAt.Equal(due) {
		f.T.Errorf("got timers %s, want one that starts the instance", kit.Text(ts))
	}
	if at := f.Instance("c").StartAt; !at.Equal(due) {
		f.T.Errorf("the instance starts at %v, want %v", at, due)
	}
}

func delayedStart(f *kit.Fixture) {
	s := kit.StartOf("a")
	s.StartAt = f.StoredNow().Add(2 * time.Second)
	in, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("woken %v too early: got %s", s.StartAt.Sub(f.Now()), kit.Text(ms))
	}
	if ts := f.Timers(); len(ts) > 0 {
		f.T.Errorf("timer received %v too early: got %s", s.StartAt.Sub(f.Now()), kit.Text(ts))
	}
	f.Advance(s.StartAt.Sub(f.Now()))
	ts := f.DueTimers()
	if len(ts) != 1 || ts[0].TimerID != 1 || ts[0].ExecutionID != in.ExecutionID || !ts[0].FireAt.Equal(s.StartAt) {
		f.T.Errorf("timers at the due time: got %s", kit.Text(ts))
	}
	e := &kit.Execution{F: f, Instance: in}
	if at := e.History()[0].StartAt; at == nil || !at.Equal(s.StartAt) || !f.Instance("a").StartAt.Equal(s.StartAt) {
		f.T.Errorf("history contains start time %v", at)
	}
}

func lostStartMessage(f *kit.Fixture) {
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	e := f.Create(kit.StartMessageOf("c", "s1"))
	if hits() != 1 || e.Head.ExecutionID != e.Instance.ExecutionID {
		f.T.Errorf("got %d lost responses, head %+v", hits(), e.Head)
	}
}
