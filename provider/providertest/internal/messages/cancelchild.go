package messages

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// CancelChild tests that a message cancels only the incarnation of a child that its start created (R16).
func CancelChild() kit.Group {
	return kit.Group{Name: "cancel child", Cases: []kit.Case{
		{Name: "ACancelIsSent", Run: cancelSent},
		{Name: "AnEndingParentsCancelIsSent", Run: cancelOfEndingParent},
		{Name: "CancelBeforeChildStartLeavesTombstone", Run: cancelBeforeStart},
		{Name: "AnotherStartOfTheIDSucceeds", Run: startOverTombstone},
		{Name: "AnInstanceThatIsThereIsAConflict", Run: cancelOfExistingChild},
	}}
}

func cancelEvent(child string, source int64) history.Event {
	return history.Event{
		Kind: history.SubOrchestrationCancelRequested, InstanceID: child, SourceEventID: source,
		Reason: "parent_cancelled", Message: "m",
		RequestedBy: history.RequestedByEngine,
	}
}

// cancelMessageOf returns the message of a parent that cancels the start s1.
func cancelMessageOf(id string) *provider.InboxMessage {
	return &provider.InboxMessage{Message: provider.Message{
		Kind: provider.MessageCancel, InstanceID: id, StartID: "s1", Reason: "parent_cancelled",
		RequestedBy: "parent:p",
		Parent:      &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5},
	}}
}

func cancelSent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	e.Commit(kit.TurnStarted(), kit.Child(), cancelEvent("c", 3))
	ms := f.Messages()
	if len(ms) != 2 {
		f.T.Fatalf("%d messages, want a start and a cancel", len(ms))
	}
	x := e.Instance.ExecutionID
	for i := range ms {
		if ms[i].Kind == provider.MessageCancel {
			f.WantEqual("cancel", ms[i].Message, provider.Message{
				V: provider.WireVersion, Kind: provider.MessageCancel, InstanceID: "c", StartID: provider.StartID(x, 3),
				Reason: "parent_cancelled", Text: "m",
				RequestedBy: "parent:p", Parent: &history.Parent{InstanceID: "p", ExecutionID: x, EventID: 3},
			})
			return
		}
	}
	f.T.Errorf("sent %s, but no cancel", kit.Text(ms))
}

func cancelOfEndingParent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	e.Commit(kit.TurnStarted(), kit.Child())
	f.Messages()
	e.Commit(kit.TurnStarted(), cancelEvent("c", 3), kit.Ended("1"))
	if ms := f.Messages(); len(ms) != 1 || ms[0].Kind != provider.MessageCancel {
		f.T.Errorf("sent %s, want a cancel", kit.Text(ms))
	}
}

func cancelBeforeStart(f *kit.Fixture) {
	for range 2 {
		f.Must(f.Provider.RejectCancel(f.Ctx(), cancelMessageOf("c")))
	}
	ms := f.Messages()
	if len(ms) == 0 || ms[0].Kind != provider.MessageChildOutcome || ms[0].Error == nil ||
		ms[0].Error.Type != history.TypeCancelled || ms[0].InstanceID != "p" {
		f.T.Errorf("messages to the parent: %s", kit.Text(ms))
	}
	_, err := f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("c", "s1"))
	f.WantErrorIs(err, provider.ErrAlreadyExists)
	_, err = f.Provider.ReadInstance(f.Ctx(), "c")
	f.WantErrorIs(err, provider.ErrNotFound)
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	if len(page.Instances) > 0 {
		f.T.Errorf("a tombstone is listed: %s", kit.Text(page))
	}
}

func startOverTombstone(f *kit.Fixture) {
	f.Must(f.Provider.RejectCancel(f.Ctx(), cancelMessageOf("c")))
	e := f.Create(kit.StartMessageOf("c", "s2"))
	if e.Instance.StartID != "s2" {
		f.T.Errorf("instance %s", kit.Text(e.Instance))
	}
	_, err := f.Provider.CreateOrchestration(f.Ctx(), kit.StartMessageOf("c", "s1")) // rejected permanently
	f.WantErrorIs(err, provider.ErrAlreadyExists)
	f.Must(f.Provider.RejectCancel(f.Ctx(), cancelMessageOf("d")))
	f.Start("d") // started by a client
}

func cancelOfExistingChild(f *kit.Fixture) {
	f.Create(kit.StartMessageOf("c", "s1"))
	f.WantErrorIs(f.Provider.RejectCancel(f.Ctx(), cancelMessageOf("c")), provider.ErrConflict)
	f.WantStatus("c", provider.StatusPending)
}
