package instances

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Deletion tests that a deletion ends an instance permanently for callers, workers and a process with a turn in
// progress (R17).
func Deletion() kit.Group {
	faults, corrupt := []kit.Capability{kit.Faults}, []kit.Capability{kit.Corruption}
	return kit.Group{Name: "deletion", Cases: []kit.Case{
		{Name: "RunningInstanceNeedsForce", Run: onlyEnded},
		{Name: "NothingRemainsReadable", Run: nothingLeft},
		{Name: "UnknownInstanceIsNotFound", Run: deleteMissingInstance},
		{Name: "LateCommitDoesNotRestoreInstance", Run: lateAck},
		{Name: "LateCommitOfEarlierExecutionDoesNotRestoreInstance", Run: lateAckAcross},
		{Name: "LateStatusDoesNotRestoreInstance", Run: lateEnd, Needs: faults},
		{Name: "ChildrenAreCancelled", Run: deletedParent},
		{Name: "ParentReceivesOutcome", Run: deletedChild},
		{Name: "ParentReceivesOriginalOutcome", Run: originalOutcome, Needs: faults},
		{Name: "OutlivingOutputsAreSent", Run: sendsOutlivingOutputs, Needs: faults},
		{Name: "OutputsOfEarlierExecutionAreSent", Run: sendsOutlivingOutputsAcross, Needs: faults},
		{Name: "OldOutputsAreNotSentAgain", Run: longAgo, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "AllExecutionsAreDeleted", Run: chainDeleted},
		{Name: "LargeInstanceIsDeleted", Run: largeDeleted, Long: true},
		{Name: "DamagedInstanceIsDeleted", Run: damagedDeleted, Long: true, Needs: corrupt},
		{
			Name: "EndedDamagedInstanceIsNotEndedAgain", Run: damagedEnded,
			Needs: []kit.Capability{kit.Corruption, kit.Faults},
		},
		{
			Name: "DamagedEndIsNotReportedAgain", Run: damagedEndDeleted,
			Needs: []kit.Capability{kit.Corruption, kit.VirtualTime},
		},
		{Name: "ConsumedMessagesOfDamagedInstanceAreKnown", Run: damagedWatermark, Needs: corrupt},
		{Name: "DeletionContinuesWhereItStopped", Run: resumesDeletion, Long: true, Needs: faults},
		{Name: "LostResponseIsSuccess", Run: lostDeletion, Needs: faults},
		{Name: "IDIsInUseDuringDeletion", Run: deletingInstance, Needs: faults},
		{Name: "OwnStartReceivesOneResponse", Run: ownStartMeanwhile, Needs: faults},
		{Name: "CancelDuringDeletionReceivesResponse", Run: cancelMeanwhile, Needs: faults},
		{Name: "UnfinishedDeletionIsFound", Run: staysDeleting, Needs: []kit.Capability{kit.Faults, kit.VirtualTime}},
		{Name: "IDIsFreeAfterDeletion", Run: idIsFree},
		{Name: "RejectedStartStaysRejected", Run: refusedStaysRefused},
		{Name: "EventOfPreviousIncarnationIsDropped", Run: lastIncarnation},
		{Name: "ConcurrentDeletionsDeleteOnce", Run: deletedByMany},
	}}
}

// wantGone fails if the instance or one of these executions can be read.
func wantGone(f *kit.Fixture, id string, executions ...string) {
	f.T.Helper()
	wantNone := func(what string, err error) {
		f.T.Helper()
		if !errors.Is(err, provider.ErrNotFound) {
			f.T.Errorf("%s: got error %v, want %v", what, err, provider.ErrNotFound)
		}
	}
	wantNone("ReadInstance", kit.ErrOf(f.Provider.ReadInstance(f.Ctx(), id)))
	wantNone("ListExecutions", kit.LastErr(f.Provider.ListExecutions(f.Ctx(), id)))
	for _, x := range executions {
		wantNone("ReadHistory", kit.LastErr(f.Provider.ReadHistory(f.Ctx(), id, x, 0)))
		wantNone("ReadTerminalEvent", kit.ErrOf(f.Provider.ReadTerminalEvent(f.Ctx(), x)))
		for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
			for _, named := range []string{x, ""} {
				it := &provider.OrchestrationItem{
					InstanceID: id,
					Messages: []provider.InboxMessage{
						{Message: provider.Message{InstanceID: id, ExecutionID: named}},
					},
				}
				wantNone("ReadOrchestration", kit.ErrOf(f.Provider.ReadOrchestration(f.Ctx(), it, c)))
			}
		}
	}
	if slices.Contains(f.List(provider.ListQuery{}), id) {
		f.T.Errorf("deleted instance %q is listed", id)
	}
}

func onlyEnded(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "a", false), provider.ErrNotEnded)
	t := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "a", false), provider.ErrNotEnded)
	e.WantSegments(t)
	f.WantStatus("a", provider.StatusRunning)
	e.WantReasons("", "", "")
	e.Commit(kit.Completed(3), kit.Ended(`1`))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", false))
	wantGone(f, "a", e.Instance.ExecutionID)
	running := f.StartWithoutWake("b")
	running.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.DeleteInstance("b")
	wantGone(f, "b", running.Instance.ExecutionID)
}

func nothingLeft(f *kit.Fixture) {
	e, other := f.Start("a"), f.Start("other")
	t := other.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.TurnStarted(), kit.Bulky(900<<10)) // several parts
	e.Commit(kit.Activity(kit.Queue))
	e.Commit(kit.Ended(`1`))
	f.DeleteInstance("a")
	wantGone(f, "a", e.Instance.ExecutionID)
	other.WantSegments(t)
	f.WantStatus("other", provider.StatusRunning)
}

func deleteMissingInstance(f *kit.Fixture) {
	for _, force := range []bool{false, true} {
		f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "missing", force), provider.ErrNotFound)
	}
	f.Start("a")
	f.DeleteInstance("a")
	for _, force := range []bool{false, true} {
		f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "a", force), provider.ErrNotFound)
	}
	_, err := f.Provider.ReadInstance(f.Ctx(), "missing")
	f.WantErrorIs(err, provider.ErrNotFound)
}

// lateAck checks that turns from before the deletion, on the head and on an older head, are conflicts and send nothing.
func lateAck(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	first := e.Turn(kit.TurnStarted(), kit.Activity(kit.OtherQueue))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	onHead := e.Turn(kit.Completed(3), kit.Activity(kit.OtherQueue), kit.Detached("b"))
	ends := e.Turn(kit.Ended(`1`))
	continues := e.Continuing("x2", kit.TurnStarted(), kit.Detached("b"))
	f.DeleteInstance("a")
	f.Work(kit.Queue)
	for _, t := range []*provider.Turn{first, onHead, ends, continues} {
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
		f.WantErrorIs(err, provider.ErrConflict)
	}
	f.WantNothingSent()
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("sent %s", kit.Text(ms))
	}
	wantGone(f, "a", e.Instance.ExecutionID, "x2")
}

func lateAckAcross(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	late := e.Turn(kit.TurnStarted(), kit.Activity(kit.OtherQueue))
	next := e.ContinueAs("x2", kit.TurnStarted())
	lateNext := next.Turn(kit.TurnStarted(), kit.Activity(kit.OtherQueue))
	f.DeleteInstance("a")
	for _, t := range []*provider.Turn{late, lateNext} {
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
		f.WantErrorIs(err, provider.ErrConflict)
	}
	f.WantNothingSent()
}

// lateEnd checks a committed final turn that writes its status during or after the deletion.
func lateEnd(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), kit.Ended(`1`))); err == nil {
		f.T.Error("no error although the message to the parent was not sent")
	}
	o := e.Read()
	for _, deleted := range []bool{false, true} {
		if deleted {
			f.DeleteInstance("c")
		} else {
			stopDeletion(f, "c", kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
		}
		_, err := f.Provider.RedispatchOrchestration(f.Ctx(), o, kit.Since(kit.At(10)))
		f.Must(err)
		if !deleted {
			f.WantStatus("c", provider.StatusDeleting)
		}
	}
	wantGone(f, "c", e.Instance.ExecutionID)
}

func deletedParent(f *kit.Fixture) {
	e := f.StartWithoutWake("p")
	e.Commit(kit.TurnStarted(), kit.Child(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow().Add(time.Hour)))
	f.Messages()
	f.DeleteInstance("p")
	ms := f.Messages()
	if len(ms) != 1 {
		f.T.Fatalf("got %d messages, want the cancel of the child: %s", len(ms), kit.Text(ms))
	}
	f.WantEqual("cancel", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageCancel, InstanceID: "c",
		StartID: provider.StartID(e.Instance.ExecutionID, 3),
		Reason:  "instance_deleted", RequestedBy: history.RequestedByParent + "p",
		Parent: &history.Parent{InstanceID: "p", ExecutionID: e.Instance.ExecutionID, EventID: 3},
	})
}

// wantParentNotified fails if the parent of the start does not receive this outcome, or receives another one. The
// outcome can arrive more than once.
func wantParentNotified(f *kit.Fixture, start *provider.InboxMessage, result string, failure *history.Failure) {
	f.T.Helper()
	reported := 0
	for _, m := range f.Messages() {
		if m.Kind != provider.MessageChildOutcome {
			continue
		}
		reported++
		want := provider.Message{
			V: provider.WireVersion, Kind: provider.MessageChildOutcome, InstanceID: start.Parent.InstanceID,
			ExecutionID:   start.Parent.ExecutionID,
			SourceEventID: start.Parent.EventID, ChildID: start.InstanceID, Error: failure,
		}
		if result != "" {
			want.Result = history.Payload(result)
		}
		f.WantEqual("message to the parent", m.Message, want)
	}
	if reported == 0 {
		f.T.Errorf("no message to the parent of %q", start.InstanceID)
	}
}

func wasDeleted() *history.Failure {
	return &history.Failure{Type: history.TypeTerminated, Message: "deleted", NonRetryable: true}
}

func deletedChild(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.DeleteInstance("c")
	wantParentNotified(f, kit.StartMessageOf("c", "s1"), "", wasDeleted())
}

// originalOutcome checks a process that died after it committed the end and before it sent the outcome to the parent.
// The deletion sends the child's real outcome.
func originalOutcome(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), kit.Ended(`"paid"`))); err == nil {
		f.T.Error("no error although the message to the parent was not sent")
	}
	f.WantErrorIs(f.Provider.DeleteInstance(f.Ctx(), "c", false), provider.ErrNotEnded) // the outcome has not been sent
	f.DeleteInstance("c")
	wantParentNotified(f, kit.StartMessageOf("c", "s1"), `"paid"`, nil)
	wantGone(f, "c", e.Instance.ExecutionID)
}

// sendsOutlivingOutputs checks a process that crashed after a commit and before it sent the outputs that outlive the
// instance.
func sendsOutlivingOutputs(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), kit.Detached("b"))); err == nil {
		f.T.Error("no error although an output was not sent")
	}
	f.DeleteInstance("a")
	if ms := f.Messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.T.Errorf("sent %s, want the start of b", kit.Text(ms))
	}
	f.WantNothingSent()
}

func sendsOutlivingOutputsAcross(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(),
		e.Continuing("x2", kit.TurnStarted(), kit.Detached("b"))); err == nil {
		f.T.Error("no error although an output was not sent")
	}
	f.DeleteInstance("a")
	if ms := f.Messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.T.Errorf("sent %s, want the start of b", kit.Text(ms))
	}
}

// longAgo checks that an old start is not made again, because the started instance and its tombstone may have been
// deleted.
func longAgo(f *kit.Fixture) {
	const aLongTime = 90 * 24 * time.Hour
	e := f.Create(kit.StartMessageOf("c", "s1"))
	e.Commit(kit.TurnStarted(), kit.Detached("b"))
	f.Messages()
	f.Advance(aLongTime)
	f.DeleteInstance("c")
	wantParentNotified(f, kit.StartMessageOf("c", "s1"), "", wasDeleted())
	done := f.StartWithoutWake("over")
	done.Commit(kit.TurnStarted(), kit.Detached("b"), kit.Ended(`1`))
	f.Messages()
	f.Advance(aLongTime)
	f.DeleteInstance("over")
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("sent %s", kit.Text(ms))
	}
}

func chainDeleted(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	executions := []string{e.Instance.ExecutionID}
	for n := 2; n <= 12; n++ {
		next := fmt.Sprintf("x%d", n)
		e = e.ContinueAs(next, kit.TurnStarted(), kit.Bulky(10))
		executions = append(executions, next)
	}
	f.DeleteInstance("a")
	wantGone(f, "a", executions...)
}

func largeDeleted(f *kit.Fixture) {
	const segments = 500
	e := f.StartWithoutWake("a")
	for range segments {
		e.Commit(kit.TurnStarted())
	}
	f.DeleteInstance("a")
	wantGone(f, "a", e.Instance.ExecutionID)
	for _, head := range []int64{0, 1, segments - 1, segments} {
		t := e.Turn(kit.TurnStarted())
		t.Head.Segment = head
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
		f.WantErrorIs(err, provider.ErrConflict)
	}
}
