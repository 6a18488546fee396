package activities

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// CancelFlags tests that the cancel record contains exactly the cancel decisions in the history (R12; seed 002, row
// by row).
func CancelFlags() kit.Group {
	return kit.Group{Name: "cancelflags", Cases: []kit.Case{
		{Name: "ReceiveReturnsCancelFlag", Run: fetchSurfaces},
		{Name: "ReceiveReadsCancelRecordOncePerExecution", Run: receiveReadsOnce, Needs: []kit.Capability{kit.Faults}},
		{Name: "ReceiveReportsFailedReadOfCancelRecord", Run: fetchUnreadable, Needs: []kit.Capability{kit.Faults}},
		{Name: "AckEnqueueAndCancelInOneTransaction", Run: enqueueAndCancel},
		{Name: "FailedCommitWritesNoCancelFlag", Run: failedAckLeavesNoFlag},
		{Name: "RejectedCommitWritesNoCancelFlag", Run: refusedLeavesNoFlag, Needs: []kit.Capability{kit.Faults}},
		{Name: "LostResponseIsSuccess", Run: lostCancel, Needs: []kit.Capability{kit.Faults}},
		{Name: "MassCancel", Run: massCancel},
		{Name: "MassCancelFragmented", Run: massCancelFragmented},
		{Name: "AnyIDsInAnyOrder", Run: anyCancels},
		{Name: "CancelIsIdempotentFirstReasonWins", Run: firstReasonWins},
		{Name: "LaterTurnAddsToCancelRecord", Run: laterTurnAdds},
		{Name: "RecordOfManyTurnsIsEqualFromAnySegment", Run: manyCancellingTurns},
		{Name: "ContinuedReadMissesNothing", Run: readingOn},
		{Name: "StalePollMissesNothing", Run: pollingOn, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "ReadOfCancelRecordIsNeverStale", Run: strongCancels, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "TurnCancelsMoreThanAnItemHolds", Run: severalItems},
		{Name: "TurnCancelsMoreThanACommitHolds", Run: tooManyCancels},
		{Name: "CancelUnknownIsHarmless", Run: cancelUnknown},
		{Name: "RenewalReturnsCancelFlag", Run: renewSurfaces, Needs: []kit.Capability{kit.Polling}},
		{
			Name: "RenewalNeedsOnlyTokenAndLock", Run: renewLeases, Needs: []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{
			Name: "RenewalExtendsLockOfCancelledActivity", Run: renewExtendsCancelled,
			Needs:      []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{
			Name: "RenewalWithoutReadExtendsLock", Run: renewUnreadable,
			Needs: []kit.Capability{kit.Polling, kit.Faults}, Visibility: kit.ShortLock,
		},
		{Name: "AckWithoutCompletion", Run: ackWithoutCompletion, Visibility: kit.ShortLock},
		{Name: "CompletionAfterCancelIsFiltered", Run: completionAfterCancel},
		{
			Name: "CancelDoesNotTouchAttempts", Run: attemptsOfCancelled, Needs: []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{Name: "CancelIsPerExecution", Run: cancelPerExecution},
		{Name: "EndCancelsAllOpenWork", Run: endCancelsAll},
		{Name: "LargeTurnWithCancelsCommitsAtomically", Run: largeCancel},
		{Name: "ActivityOfDeletedInstance", Run: orphanAfterDelete},
		{Name: "LateTurnCancelsNothingOfDeletedInstance", Run: lateCancelAfterDelete},
		{
			Name: "EndOfDamagedHistoryCancelsOpenWork", Run: damagedEndCancels,
			Needs: []kit.Capability{kit.Corruption},
		},
		{Name: "UnreachableRecordIsAnError", Run: unreadableCancels, Needs: []kit.Capability{kit.Faults}},
	}}
}

// cancels returns the event of code that cancels activities.
func cancels(reason string, ids ...history.Range) history.Event {
	e := history.Event{
		Kind: history.ActivityCancelRequested, Reason: reason, Message: "m",
		RequestedBy: history.RequestedByOrchestration,
	}
	if len(ids) == 1 && ids[0].First == ids[0].Last {
		e.SourceEventID = ids[0].First
	} else {
		e.SourceEventIDs = ids
	}
	return e
}

func one(id int64) history.Range { return history.Range{First: id, Last: id} }

// recordTurn returns a turn with these events. The events may cancel activities that the history does not contain,
// because a provider does not check this.
func recordTurn(e *kit.Execution, decided ...history.Event) *provider.Turn {
	return deciding(e, e.Turn(kit.TurnStarted()), provider.CancelsOf(decided))
}

// cancelTurn returns a turn with the cancel decisions of its events.
func cancelTurn(e *kit.Execution, events ...history.Event) *provider.Turn {
	t := e.Turn(events...)
	return deciding(e, t, provider.CancelsOf(t.Events))
}

func deciding(e *kit.Execution, t *provider.Turn, cancels provider.Cancels) *provider.Turn {
	t.Cancels = cancels
	if last := e.Block.Last; len(cancels) > 0 {
		t.CancelsAfter = &last
	}
	_, t.CancelBlock = e.Block.Add(t.Head.Segment+1, cancels)
	return t
}

func enqueueAndCancel(f *kit.Fixture) {
	e := f.Start("a")
	behind(f)
	writes := f.Count(kit.Write)
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	writes.Want(1, "a turn and its cancel flags are one write")
	e.WantReasons("", "", "requested")
	items := f.Work(kit.Queue)
	if len(items) != 1 || !flag(f, &items[0]).Requested {
		f.T.Errorf("received %s, want the cancelled activity", kit.Text(items))
	}
}

func failedAckLeavesNoFlag(f *kit.Fixture) {
	e := f.Start("a")
	loser := cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.OtherQueue), cancels("requested", one(3)))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), loser)
	f.WantErrorIs(err, provider.ErrConflict)
	e.WantReasons("", "", "")
	if n := len(f.Drain(kit.OtherQueue)); n > 0 {
		f.T.Errorf("%d work items of the turn that was not committed, want none", n)
	}
}

func refusedLeavesNoFlag(f *kit.Fixture) {
	e := f.Start("a")
	f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, Times: 1})
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(),
		cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	f.WantPermanent(err)
	e.WantReasons("", "", "")
	e.WantSegments()
}

func lostCancel(f *kit.Fixture) {
	e := f.Start("a")
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	if e.WantReasons("", "", "requested"); hits() != 1 {
		f.T.Errorf("got %d lost responses, want 1", hits())
	}
}

func firstReasonWins(f *kit.Fixture) {
	e := f.Start("a")
	first := cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3)))
	e.Ack(first)
	second := cancelTurn(e, kit.TurnStarted(), cancels("requested", one(3), one(4)))
	e.Ack(second)
	e.WantReasons("", "", "select_loser", "requested")
	f.Redispatch(e, kit.At(1))
	e.WantReasons("", "", "select_loser", "requested")
}

// laterTurnAdds checks that a turn writes only its own decisions. Earlier decisions stay in the record before them.
func laterTurnAdds(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3)), cancels("timeout", one(4))))
	e.Commit(kit.TurnStarted())
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("requested", one(5))))
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("timeout", one(3), one(4), one(5))))
	e.WantReasons("", "", "select_loser", "timeout", "requested", "")
	var order []string
	for _, c := range f.Cancels(e.Head.ExecutionID) {
		order = append(order, c.Reason)
	}
	f.WantEqual("decisions", order, []string{"select_loser", "timeout", "requested", "timeout"})
}

// shortPass is a wait that is short even in real time.
const shortPass = 10 * time.Millisecond

func cancelUnknown(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.Completed(3))
	e.Ack(recordTurn(e, cancels("requested", one(3), one(4711))))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.WantStatus("a", provider.StatusRunning)
	if c := f.Cancels("unknown"); len(c) > 0 {
		f.T.Errorf("unknown execution has the record %s", kit.Text(c))
	}
}

// ackWithoutCompletion acknowledges a cancelled activity that did not run. Nothing is sent, and its record is deleted.
func ackWithoutCompletion(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, []provider.CompletedWorkItem{
		{LockedWorkItem: &f.Locked(kit.Queue)[0]},
	})
	f.Must(err)
	if len(failed) > 0 {
		f.T.Errorf("got %d failed records", len(failed))
	}
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("messages to the orchestration: got %s", kit.Text(ms))
	}
	f.Advance(kit.PastLock)
	f.WantNothingSent()
}

// attemptsOfCancelled checks that deliveries and crashes are counted for a cancelled activity as for other activities.
func attemptsOfCancelled(f *kit.Fixture) {
	items := cancelledWork(f)
	for delivery := 1; delivery <= 3; delivery++ {
		if delivery > 1 {
			f.Advance(kit.PastLock)
			items, _ = f.Provider.DecodeWorkItems(f.Ctx(), f.Fetch(kit.Queue, 3))
		}
		if len(items) != 3 {
			f.T.Fatalf("delivery %d has %d work items, want 3", delivery, len(items))
		}
		for _, it := range items {
			f.WantEqual("delivery and attempt", []int{it.Record.ReceiveCount, it.Attempt}, []int{delivery, 1})
			f.WantCrashes(provider.Delivery{
				ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Record,
			}, delivery-1)
		}
	}
}

// completionAfterCancel checks that the outcome of a cancelled activity is accepted and sent. The turn decides whether
// the code receives it.
func completionAfterCancel(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	f.Messages()
	done := provider.CompletedWorkItem{
		LockedWorkItem: &f.Locked(kit.Queue)[0],
		Outcome:        &provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload("1")},
	}
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, []provider.CompletedWorkItem{done})
	f.Must(err)
	ms := f.Messages()
	if len(failed) != 0 || len(ms) != 1 {
		f.T.Fatalf("got %d failed records, %d messages; want the outcome to be sent", len(failed), len(ms))
	}
	f.WantEqual("the outcome", ms[0].Outcomes, []provider.ActivityOutcome{*done.Outcome})
}

func cancelPerExecution(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Continuing("x2", kit.TurnStarted(), kit.Activity(kit.Queue),
		cancels("orchestration_terminal_continued_as_new", one(3)))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	if !f.Cancels(e.Instance.ExecutionID).Of(3).Requested {
		f.T.Error("ended execution has no cancel record")
	}
	if f.Cancels("x2").Of(3).Requested {
		f.T.Error("next execution has the cancel record of the previous one")
	}
}

func endCancelsAll(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	by := cancels("orchestration_terminal_completed", one(3))
	by.RequestedBy = history.RequestedByEngine
	e.Ack(cancelTurn(e, kit.TurnStarted(), by, kit.Ended("1")))
	e.WantReasons(slices.Repeat([]string{"orchestration_terminal_completed"}, 5)...)
	f.WantStatus("a", provider.StatusCompleted)
}

// orphanAfterDelete checks that running and queued activities of a deleted instance are cancelled. The same applies to
// activities of an execution that has continued as new, and to activities without a record.
func orphanAfterDelete(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	next := e.ContinueAs("x2", kit.Completed(3))
	t := cancelTurn(next, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(4)))
	next.Ack(t)
	queued := f.Locked(kit.Queue)
	if f.Can(kit.Faults) { // the write that ends the instance also cancels the activities
		f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, After: 1})
		f.WantPermanent(f.Provider.DeleteInstance(f.Ctx(), "a", true))
		f.Fail(kit.Fault{})
		next.WantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	}
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	next.WantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	e.WantReasons("instance_deleted", "instance_deleted", "instance_deleted")
	if len(queued) != 3 {
		f.T.Errorf("got %d work items, want 3", len(queued))
	}
	for _, w := range queued {
		if info := f.Cancels(w.ExecutionID).Of(w.ActivityID); !info.Requested || info.RequestedAt.IsZero() {
			f.T.Errorf("activity %d of execution %s: got %+v", w.ActivityID, w.ExecutionID, info)
		}
	}
}

// lateCancelAfterDelete commits a turn that was running when the instance was deleted.
func lateCancelAfterDelete(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3))))
	late := cancelTurn(e, kit.TurnStarted(), cancels("requested", one(4)))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), late)
	f.WantErrorIs(err, provider.ErrConflict)
	e.WantReasons("instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	if record := f.Cancels(e.Head.ExecutionID); !record.Of(3).Deleted || !record.Of(4).Deleted {
		f.T.Errorf("record does not mark the instance as deleted: %s", kit.Text(record))
	}
}

// damagedEndCancels checks that the decisions of turns are kept although the history cannot be read.
func damagedEndCancels(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3))))
	e.Commit(kit.TurnStarted())
	f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
	f.Enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: "a"})
	f.Must(f.Provider.TerminateCorrupt(f.Ctx(), &f.Messages()[0]))
	e.WantReasons("orchestration_terminal_terminated", "orchestration_terminal_terminated", "select_loser",
		"orchestration_terminal_terminated")
}
