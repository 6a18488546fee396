package providertest

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A message cancels a child, but only the incarnation of its start (R16).
func cancelChild() group {
	return group{"cancel child", []testCase{
		{name: "ACancelIsSent", run: cancelSent},
		{name: "AnEndingParentsCancelIsSent", run: cancelOfEndingParent},
		{name: "CancelBeforeChildStartLeavesTombstone", run: cancelBeforeStart},
		{name: "AnotherStartOfTheIDSucceeds", run: startOverTombstone},
		{name: "AnInstanceThatIsThereIsAConflict", run: cancelOfTheLiving},
	}}
}

func cancelEvent(child string, source int64) history.Event {
	return history.Event{
		Kind: history.SubOrchestrationCancelRequested, InstanceID: child, SourceEventID: source, Reason: "parent_cancelled", Message: "m",
		RequestedBy: history.RequestedByEngine,
	}
}

// cancelMessageOf returns a cancel of the start s1, as a parent sends it.
func cancelMessageOf(id string) *provider.InboxMessage {
	return &provider.InboxMessage{Message: provider.Message{
		Kind: provider.MessageCancel, InstanceID: id, StartID: "s1", Reason: "parent_cancelled", RequestedBy: "parent:p",
		Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5},
	}}
}

func cancelSent(f *fixture) {
	e := f.quiet("p")
	e.commit(turnStarted(), child(), cancelEvent("c", 3))
	ms := f.messages()
	if len(ms) != 2 {
		f.t.Fatalf("%d messages, want a start and a cancel", len(ms))
	}
	x := e.instance.ExecutionID
	for i := range ms {
		if ms[i].Kind == provider.MessageCancel {
			f.wantEqual("cancel", ms[i].Message, provider.Message{
				V: provider.WireVersion, Kind: provider.MessageCancel, InstanceID: "c", StartID: provider.StartID(x, 3), Reason: "parent_cancelled", Text: "m",
				RequestedBy: "parent:p", Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
			})
			return
		}
	}
	f.t.Errorf("sent %s, but no cancel", text(ms))
}

func cancelOfEndingParent(f *fixture) {
	e := f.quiet("p")
	e.commit(turnStarted(), child())
	f.messages()
	e.commit(turnStarted(), cancelEvent("c", 3), ended("1"))
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageCancel {
		f.t.Errorf("sent %s, want a cancel", text(ms))
	}
}

func cancelBeforeStart(f *fixture) {
	for range 2 {
		f.must(f.p.RejectCancel(f.ctx(), cancelMessageOf("c")))
	}
	ms := f.messages()
	if len(ms) == 0 || ms[0].Kind != provider.MessageChildOutcome || ms[0].Error == nil || ms[0].Error.Type != history.TypeCancelled || ms[0].InstanceID != "p" {
		f.t.Errorf("messages to the parent: %s", text(ms))
	}
	_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", "s1"))
	f.wantIs(err, provider.ErrAlreadyExists)
	_, err = f.p.ReadInstance(f.ctx(), "c")
	f.wantIs(err, provider.ErrNotFound)
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{})
	f.must(err)
	if len(page.Instances) > 0 {
		f.t.Errorf("a tombstone is listed: %s", text(page))
	}
}

func startOverTombstone(f *fixture) {
	f.must(f.p.RejectCancel(f.ctx(), cancelMessageOf("c")))
	e := f.create(startMessageOf("c", "s2"))
	if e.instance.StartID != "s2" {
		f.t.Errorf("instance %s", text(e.instance))
	}
	_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", "s1")) // rejected permanently
	f.wantIs(err, provider.ErrAlreadyExists)
	f.must(f.p.RejectCancel(f.ctx(), cancelMessageOf("d")))
	f.start("d") // by a client
}

func cancelOfTheLiving(f *fixture) {
	f.create(startMessageOf("c", "s1"))
	f.wantIs(f.p.RejectCancel(f.ctx(), cancelMessageOf("c")), provider.ErrConflict)
	f.wantStatus("c", provider.StatusPending)
}
