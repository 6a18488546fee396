package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Orchestrations start others by message, and receive their outcomes (R9, R10).
func children() group {
	return group{"children", []testCase{
		{name: "AChildsStartIsSent", run: childStartSent},
		{name: "AStartMessageMakesTheInstance", run: startMessage},
		{name: "ItCountsAsConsumed", run: startConsumed},
		{name: "ARepeatedStartIsTheSameInstance", run: startRepeated},
		{name: "ARepeatedStartFindsTheCurrentExecution", run: startRepeatedLater},
		{name: "AnotherStartIsRefused", run: startRefused},
		{name: "ARefusedStartIsAnswered", run: refusalAnswered},
		{name: "ARefusedDetachedStartIsNobodys", run: refusalOfDetached},
		{name: "ManyRefusedStartsStillAreAnswered", run: manyRefusals},
		{name: "TheParentIsTold", run: parentTold},
		{name: "TheParentIsToldBeforeTheInstanceIsOver", run: toldFirst, needs: []Capability{Faults}},
		{name: "TheParentIsToldAgain", run: toldAgain, needs: []Capability{VirtualTime}},
		{name: "ADelayedStartMessageSetsATimer", run: delayedMessage},
		{name: "ADelayedStartIsNotWokenEarly", run: delayedStart},
		{name: "ALostStartResponseIsTheSameInstance", run: lostStartMessage, needs: []Capability{Faults}},
	}}
}

// startMessageOf returns a start as a parent sends it.
func startMessageOf(id, startID string) *provider.InboxMessage {
	return &provider.InboxMessage{
		Message: provider.Message{
			V: provider.WireVersion, Kind: provider.MessageStart, InstanceID: id, Name: refund, Version: v1, Input: history.Payload(`7`), StartID: startID,
			Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5},
		},
		Position: at(9),
	}
}

func (f *fixture) create(m *provider.InboxMessage) *execution {
	f.t.Helper()
	o, err := f.p.CreateOrchestration(f.ctx(), m)
	f.must(err)
	if !o.Verified {
		f.t.Error("created execution is not marked as verified")
	}
	return &execution{f: f, instance: f.instance(m.InstanceID), head: o.Head, next: 2, base: number(m.Position)}
}

func childStartSent(f *fixture) {
	e := f.quiet("p")
	c := child()
	c.Version = v1
	e.commit(turnStarted(), c)
	ms := f.messages()
	if len(ms) != 1 {
		f.t.Fatalf("%d messages, want a start", len(ms))
	}
	f.wantEqual("start", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageStart, InstanceID: "c", Name: refund, Version: v1, Input: c.Input, StartID: c.StartID,
		Parent: &history.Parent{InstanceID: "p", ExecutionID: e.instance.ExecutionID, EventID: 3},
	})
}

func startMessage(f *fixture) {
	m := startMessageOf("c", "s1")
	m.Tags = map[string]string{"k": "v"}
	e := f.create(m)
	in := e.instance
	f.wantEqual("instance", in, provider.Instance{
		InstanceID: "c", ExecutionID: e.head.ExecutionID, ExecutionNumber: 1, Name: refund, Version: v1, Status: provider.StatusPending, StartID: "s1",
		CreatedAt: in.CreatedAt, UpdatedAt: in.CreatedAt, Parent: m.Parent, Tags: m.Tags,
	})
	f.wantEqual("history", e.log(), []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: in.CreatedAt, Name: refund, Version: v1, Input: m.Input, StartID: "s1", Number: 1,
		Tags: m.Tags, Parent: m.Parent,
	}})
}

func startConsumed(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	if e.head.Watermark != at(9) || e.read().Head != e.head {
		f.t.Errorf("head %+v, read %+v, want the start's position as watermark", e.head, e.read().Head)
	}
	f.redispatch(e, at(9))
	f.wantStatus("c", provider.StatusPending) // it has had no turn
}

func startRepeated(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	again := startMessageOf("c", "s1")
	again.Position = at(20)
	if second := f.create(again); second.head != e.head {
		f.t.Errorf("%+v, then %+v", e.head, second.head)
	}
}

func startRepeatedLater(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	next := e.continueAs("x2", turnStarted())
	if again := f.create(startMessageOf("c", "s1")); again.head != next.head {
		f.t.Errorf("head %+v, want the current %+v", again.head, next.head)
	}
	if f.instance("c").ExecutionID != "x2" {
		f.t.Error("the instance was created again")
	}
}

func startRefused(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	other := startMessageOf("c", "s2")
	other.Input = history.Payload(`"other"`)
	_, err := f.p.CreateOrchestration(f.ctx(), other)
	f.wantIs(err, provider.ErrAlreadyExists)
	f.start("by a client")
	_, err = f.p.CreateOrchestration(f.ctx(), startMessageOf("by a client", "s3"))
	f.wantIs(err, provider.ErrAlreadyExists)
	f.wantEqual("input", e.read().Start().Input, history.Payload(`7`))
}

func refusalAnswered(f *fixture) {
	f.quiet("c")
	m := startMessageOf("c", "s2")
	for range 2 { // repeated, because the function died before it deleted the message
		f.must(f.p.RejectStart(f.ctx(), m))
	}
	ms := f.messages()
	if len(ms) == 0 {
		f.t.Fatal("no message to the parent")
	}
	got := ms[0].Message
	if got.InstanceID != "p" || got.ExecutionID != "px" || got.SourceEventID != 5 || got.ChildID != "c" || got.Kind != provider.MessageChildOutcome {
		f.t.Errorf("messages to the parent: %s", text(got))
	}
	if got.Error == nil || got.Error.Type != history.TypeAlreadyExists || !got.Error.NonRetryable {
		f.t.Errorf("failure %s, want a non-retryable already_exists", text(got.Error))
	}
	f.wantStatus("c", provider.StatusPending)
}

func refusalOfDetached(f *fixture) {
	f.quiet("c")
	m := startMessageOf("c", "s2")
	m.Parent, m.Detached = nil, true
	f.must(f.p.RejectStart(f.ctx(), m))
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
}

// An instance stores a limited number of rejected starts, and responds to all.
func manyRefusals(f *fixture) {
	f.quiet("c")
	const many = 300
	for i := range many {
		m := startMessageOf("c", text(i))
		m.Parent.EventID = int64(i + 1)
		f.must(f.p.RejectStart(f.ctx(), m))
	}
	if n := len(f.messages()); n != many {
		f.t.Errorf("%d messages to parents, want %d", n, many)
	}
}

func parentTold(f *fixture) {
	failure := &history.Failure{Type: "Declined", Message: "no money"}
	for id, c := range map[string]struct {
		end    history.Event
		result string
		err    *history.Failure
	}{
		"completed":  {end: ended(`"paid"`), result: `"paid"`},
		"failed":     {end: history.Event{Kind: history.OrchestrationFailed, Error: failure}, err: failure},
		"terminated": {end: history.Event{Kind: history.OrchestrationTerminated, Message: "why"}, err: &history.Failure{Type: history.TypeTerminated, Message: "why", NonRetryable: true}},
	} {
		m := startMessageOf(id, "start of "+id)
		m.Parent.InstanceID, m.Parent.ExecutionID = "parent of "+id, "execution of the parent of "+id
		e := f.create(m)
		e.commit(turnStarted(), c.end)
		ms := f.messages()
		if len(ms) != 1 {
			f.t.Fatalf("%s: %d messages, want one for the parent", id, len(ms))
		}
		want := provider.Message{
			V: provider.WireVersion, Kind: provider.MessageChildOutcome, InstanceID: m.Parent.InstanceID, ExecutionID: m.Parent.ExecutionID, SourceEventID: 5, ChildID: id,
			Result: history.Payload(c.result), Error: c.err,
		}
		if c.result == "" {
			want.Result = nil
		}
		f.wantEqual(id, ms[0].Message, want)
	}
}

func toldFirst(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), ended(`1`))); err == nil {
		f.t.Error("no error although the message to the parent was not sent")
	}
	f.wantStatus("c", provider.StatusPending)
	f.redispatch(e, at(10))
	f.wantStatus("c", provider.StatusCompleted)
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("%d messages for the parent, want 1", len(ms))
	}
}

func toldAgain(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted())
	next := e.continuing("x2")
	next.Next.Start.Parent = &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5}
	_, err := f.p.AckOrchestrationItem(f.ctx(), next)
	f.must(err)
	last := f.executionAfter(next)
	t := last.turn(turnStarted(), ended(`1`))
	_, err = f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.messages()
	f.Advance(6 * time.Minute) // otherwise a queue takes it for a repetition
	f.redispatch(last, t.Watermark)
	if ms := f.messages(); len(ms) != 1 || ms[0].InstanceID != "p" {
		f.t.Errorf("sent again: %s", text(ms))
	}
}

func delayedMessage(f *fixture) {
	m := startMessageOf("c", "s1")
	due := f.now().Add(-time.Second)
	m.StartAt = &due
	e := f.create(m)
	ts := f.timers()
	if len(ts) != 1 || ts[0].TimerID != 1 || ts[0].ExecutionID != e.head.ExecutionID || !ts[0].FireAt.Equal(due) {
		f.t.Errorf("timers %s, want one that starts the instance", text(ts))
	}
	if at := f.instance("c").StartAt; !at.Equal(due) {
		f.t.Errorf("the instance starts at %v, want %v", at, due)
	}
}

func delayedStart(f *fixture) {
	s := startOf("a")
	s.StartAt = f.now().Add(2 * time.Second)
	in, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("woken %v too early: %s", s.StartAt.Sub(f.Now()), text(ms))
	}
	if ts := f.timers(); len(ts) > 0 {
		f.t.Errorf("timer received %v too early: %s", s.StartAt.Sub(f.Now()), text(ts))
	}
	f.Advance(s.StartAt.Sub(f.Now()))
	ts := f.dueTimers()
	if len(ts) != 1 || ts[0].TimerID != 1 || ts[0].ExecutionID != in.ExecutionID || !ts[0].FireAt.Equal(s.StartAt) {
		f.t.Errorf("timers at the due time: %s", text(ts))
	}
	e := &execution{f: f, instance: in}
	if at := e.log()[0].StartAt; at == nil || !at.Equal(s.StartAt) || !f.instance("a").StartAt.Equal(s.StartAt) {
		f.t.Errorf("history contains start time %v", at)
	}
}

func lostStartMessage(f *fixture) {
	hits := f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
	e := f.create(startMessageOf("c", "s1"))
	if hits() != 1 || e.head.ExecutionID != e.instance.ExecutionID {
		f.t.Errorf("%d responses lost, head %+v", hits(), e.head)
	}
}
