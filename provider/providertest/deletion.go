package providertest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A deletion ends an instance permanently: for its callers, for its workers, and for a process that still holds a turn
// of it (R17).
func deletion() group {
	faults, corrupt := []Capability{Faults}, []Capability{Corruption}
	return group{"deletion", []testCase{
		{name: "OnlyWhatIsOverUnlessForced", run: onlyWhatIsOver},
		{name: "NothingIsLeftToRead", run: nothingLeft},
		{name: "NobodyIsNotFound", run: deleteNobody},
		{name: "ALateAckCannotUndoIt", run: lateAck},
		{name: "ALateAckOfAnEarlierExecutionCannot", run: lateAckAcross},
		{name: "ALateStatusCannotUndoIt", run: lateEnd, needs: faults},
		{name: "ItsChildrenAreCancelled", run: deletedParent},
		{name: "ItsParentIsTold", run: deletedChild},
		{name: "ItsParentIsToldHowItHadEnded", run: answerLost, needs: faults},
		{name: "WhatOutlivesItIsSent", run: outlivesDeletion, needs: faults},
		{name: "WhatOutlivesAnEarlierExecutionIsSent", run: outlivesAcross, needs: faults},
		{name: "WhatWasSentLongAgoIsNotSentAgain", run: longAgo, needs: []Capability{VirtualTime}},
		{name: "AllExecutionsGo", run: chainDeleted},
		{name: "ALargeOneGoes", run: largeDeleted, long: true},
		{name: "ADamagedOneGoes", run: damagedDeleted, long: true, needs: corrupt},
		{name: "ADamagedOneThatIsOverIsNotEndedAgain", run: damagedOver, needs: []Capability{Corruption, Faults}},
		{name: "ADamagedEndIsNotSaidAnew", run: damagedEndDeleted, needs: []Capability{Corruption, VirtualTime}},
		{name: "WhatADamagedOneConsumedIsKnown", run: damagedWatermark, needs: corrupt},
		{name: "ItGoesOnWhereItStopped", run: resumesDeletion, long: true, needs: faults},
		{name: "ALostResponseIsSuccess", run: lostDeletion, needs: faults},
		{name: "MeanwhileTheIDIsInUse", run: deletingInstance, needs: faults},
		{name: "AStartOfItsOwnIsNotAnsweredTwice", run: ownStartMeanwhile, needs: faults},
		{name: "ACancelMeanwhileIsAnswered", run: cancelMeanwhile, needs: faults},
		{name: "OneThatStaysIsFound", run: staysDeleting, needs: []Capability{Faults, VirtualTime}},
		{name: "TheIDIsFreeAfterwards", run: idIsFree},
		{name: "AStartThatWasRefusedStaysRefused", run: refusedStaysRefused},
		{name: "AnEventOfTheLastLifeIsNotForTheNext", run: lastLife},
		{name: "ManyAtOnceDeleteItOnce", run: deletedByMany},
	}}
}

func (f *fixture) remove(id string) {
	f.t.Helper()
	f.must(f.p.DeleteInstance(f.ctx(), id, true))
}

// wantGone fails if the instance or one of these executions can be read.
func (f *fixture) wantGone(id string, executions ...string) {
	f.t.Helper()
	wantNone := func(what string, err error) {
		f.t.Helper()
		if !errors.Is(err, provider.ErrNotFound) {
			f.t.Errorf("%s: error %v, want %v", what, err, provider.ErrNotFound)
		}
	}
	wantNone("ReadInstance", second(f.p.ReadInstance(f.ctx(), id)))
	wantNone("ListExecutions", last(f.p.ListExecutions(f.ctx(), id)))
	for _, x := range executions {
		wantNone("ReadHistory", last(f.p.ReadHistory(f.ctx(), id, x, 0)))
		wantNone("ReadTerminalEvent", second(f.p.ReadTerminalEvent(f.ctx(), x)))
		for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
			for _, named := range []string{x, ""} {
				it := &provider.OrchestrationItem{InstanceID: id, Messages: []provider.InboxMessage{{Message: provider.Message{InstanceID: id, ExecutionID: named}}}}
				wantNone("ReadOrchestration", second(f.p.ReadOrchestration(f.ctx(), it, c)))
			}
		}
	}
	if slices.Contains(f.list(provider.ListQuery{}), id) {
		f.t.Errorf("deleted instance %q is listed", id)
	}
}

func onlyWhatIsOver(f *fixture) {
	e := f.quiet("a")
	f.wantIs(f.p.DeleteInstance(f.ctx(), "a", false), provider.ErrNotEnded)
	t := e.commit(turnStarted(), activity(Queue))
	f.wantIs(f.p.DeleteInstance(f.ctx(), "a", false), provider.ErrNotEnded)
	e.wantSegments(t)
	f.wantStatus("a", provider.StatusRunning)
	e.wantReasons("", "", "")
	e.commit(completed(3), ended(`1`))
	f.must(f.p.DeleteInstance(f.ctx(), "a", false))
	f.wantGone("a", e.instance.ExecutionID)
	running := f.quiet("b")
	running.commit(turnStarted(), activity(Queue))
	f.remove("b")
	f.wantGone("b", running.instance.ExecutionID)
}

func nothingLeft(f *fixture) {
	e, other := f.start("a"), f.start("other")
	t := other.commit(turnStarted(), activity(Queue))
	e.commit(turnStarted(), bulky(900<<10)) // several parts
	e.commit(activity(Queue))
	e.commit(ended(`1`))
	f.remove("a")
	f.wantGone("a", e.instance.ExecutionID)
	other.wantSegments(t)
	f.wantStatus("other", provider.StatusRunning)
}

func deleteNobody(f *fixture) {
	for _, force := range []bool{false, true} {
		f.wantIs(f.p.DeleteInstance(f.ctx(), "nobody", force), provider.ErrNotFound)
	}
	f.start("a")
	f.remove("a")
	for _, force := range []bool{false, true} {
		f.wantIs(f.p.DeleteInstance(f.ctx(), "a", force), provider.ErrNotFound)
	}
	_, err := f.p.ReadInstance(f.ctx(), "nobody")
	f.wantIs(err, provider.ErrNotFound)
}

// lateAck: turns that were run before the deletion, on the head and on an older one, are conflicts and send nothing.
func lateAck(f *fixture) {
	e := f.quiet("a")
	first := e.turn(turnStarted(), activity(OtherQueue))
	e.commit(turnStarted(), activity(Queue))
	onHead := e.turn(completed(3), activity(OtherQueue), detached("b"))
	ends := e.turn(ended(`1`))
	continues := e.continuing("x2", turnStarted(), detached("b"))
	f.remove("a")
	f.work(Queue)
	for _, t := range []*provider.Turn{first, onHead, ends, continues} {
		_, err := f.p.AckOrchestrationItem(f.ctx(), t)
		f.wantIs(err, provider.ErrConflict)
	}
	f.wantNothingSent()
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("sent %s", text(ms))
	}
	f.wantGone("a", e.instance.ExecutionID, "x2")
}

func lateAckAcross(f *fixture) {
	e := f.quiet("a")
	late := e.turn(turnStarted(), activity(OtherQueue))
	next := e.continueAs("x2", turnStarted())
	lateNext := next.turn(turnStarted(), activity(OtherQueue))
	f.remove("a")
	for _, t := range []*provider.Turn{late, lateNext} {
		_, err := f.p.AckOrchestrationItem(f.ctx(), t)
		f.wantIs(err, provider.ErrConflict)
	}
	f.wantNothingSent()
}

// lateEnd: the turn that ended the instance is committed, and writes its status while the instance is being deleted or
// after the deletion.
func lateEnd(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), ended(`1`))); err == nil {
		f.t.Error("no error although the message to the parent was not sent")
	}
	o := e.read()
	for _, deleted := range []bool{false, true} {
		if deleted {
			f.remove("c")
		} else {
			f.stopDeletion("c", Fault{Operation: Send, Failure: Rejected, Times: 1})
		}
		_, err := f.p.RedispatchOrchestration(f.ctx(), o, since(at(10)))
		f.must(err)
		if !deleted {
			f.wantStatus("c", provider.StatusDeleting)
		}
	}
	f.wantGone("c", e.instance.ExecutionID)
}

func deletedParent(f *fixture) {
	e := f.quiet("p")
	e.commit(turnStarted(), child(), activity(Queue), timer(f.now().Add(time.Hour)))
	f.messages()
	f.remove("p")
	ms := f.messages()
	if len(ms) != 1 {
		f.t.Fatalf("%d messages, want the cancel of the child: %s", len(ms), text(ms))
	}
	f.wantEqual("cancel", ms[0].Message, provider.Message{
		V: provider.WireVersion, Kind: provider.MessageCancel, InstanceID: "c", StartID: provider.StartID(e.instance.ExecutionID, 3),
		Reason: "instance_deleted", RequestedBy: history.RequestedByParent + "p",
		Parent: &history.Parent{InstanceID: "p", ExecutionID: e.instance.ExecutionID, EventID: 3},
	})
}

// wantTold fails unless the parent of the start receives exactly this outcome, possibly more than once.
func (f *fixture) wantTold(start *provider.InboxMessage, result string, failure *history.Failure) {
	f.t.Helper()
	told := 0
	for _, m := range f.messages() {
		if m.Kind != provider.MessageChildOutcome {
			continue
		}
		told++
		want := provider.Message{
			V: provider.WireVersion, Kind: provider.MessageChildOutcome, InstanceID: start.Parent.InstanceID, ExecutionID: start.Parent.ExecutionID,
			SourceEventID: start.Parent.EventID, ChildID: start.InstanceID, Error: failure,
		}
		if result != "" {
			want.Result = history.Payload(result)
		}
		f.wantEqual("told", m.Message, want)
	}
	if told == 0 {
		f.t.Errorf("no message to the parent of %q", start.InstanceID)
	}
}

func wasDeleted() *history.Failure {
	return &history.Failure{Type: history.TypeTerminated, Message: "deleted", NonRetryable: true}
}

func deletedChild(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted(), activity(Queue))
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), "", wasDeleted())
}

// answerLost: the process that committed the end died before it sent the outcome to the parent. The deletion sends the
// child's real outcome.
func answerLost(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), ended(`"paid"`))); err == nil {
		f.t.Error("no error although the message to the parent was not sent")
	}
	f.wantIs(f.p.DeleteInstance(f.ctx(), "c", false), provider.ErrNotEnded) // its end has not been sent
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), `"paid"`, nil)
	f.wantGone("c", e.instance.ExecutionID)
}

// outlivesDeletion: the process that committed the previous turn died before it sent the outputs that outlive the
// instance.
func outlivesDeletion(f *fixture) {
	e := f.quiet("a")
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), detached("b"))); err == nil {
		f.t.Error("no error although an output was not sent")
	}
	f.remove("a")
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.t.Errorf("sent %s, want the start of b", text(ms))
	}
	f.wantNothingSent()
}

func outlivesAcross(f *fixture) {
	e := f.quiet("a")
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.continuing("x2", turnStarted(), detached("b"))); err == nil {
		f.t.Error("no error although an output was not sent")
	}
	f.remove("a")
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.t.Errorf("sent %s, want the start of b", text(ms))
	}
}

// longAgo: the started instance may have been purged, and its tombstone deleted. It must not be started again.
func longAgo(f *fixture) {
	const aLongTime = 90 * 24 * time.Hour
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted(), detached("b"))
	f.messages()
	f.Advance(aLongTime)
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), "", wasDeleted())
	done := f.quiet("over")
	done.commit(turnStarted(), detached("b"), ended(`1`))
	f.messages()
	f.Advance(aLongTime)
	f.remove("over")
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("sent %s", text(ms))
	}
}

func chainDeleted(f *fixture) {
	e := f.quiet("a")
	executions := []string{e.instance.ExecutionID}
	for n := 2; n <= 12; n++ {
		next := fmt.Sprintf("x%d", n)
		e = e.continueAs(next, turnStarted(), bulky(10))
		executions = append(executions, next)
	}
	f.remove("a")
	f.wantGone("a", executions...)
}

func largeDeleted(f *fixture) {
	const segments = 500
	e := f.quiet("a")
	for range segments {
		e.commit(turnStarted())
	}
	f.remove("a")
	f.wantGone("a", e.instance.ExecutionID)
	for _, head := range []int64{0, 1, segments - 1, segments} {
		t := e.turn(turnStarted())
		t.Head.Segment = head
		_, err := f.p.AckOrchestrationItem(f.ctx(), t)
		f.wantIs(err, provider.ErrConflict)
	}
}
