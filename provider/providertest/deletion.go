package providertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// What is deleted is over for good: for those who wait for it, for those who work for it, and for whoever still holds a turn of
// it (R17).
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
		{name: "WhatWasSentLongAgoIsNotSentAgain", run: longAgo, needs: []Capability{LongTime}},
		{name: "AllExecutionsGo", run: chainDeleted},
		{name: "ALargeOneGoes", run: largeDeleted},
		{name: "ADamagedOneGoes", run: damagedDeleted, needs: corrupt},
		{name: "ADamagedOneThatIsOverIsNotEndedAgain", run: damagedOver, needs: []Capability{Corruption, Faults}},
		{name: "ADamagedEndIsNotSaidAnew", run: damagedEndDeleted, needs: []Capability{Corruption, LongTime}},
		{name: "WhatADamagedOneConsumedIsKnown", run: damagedWatermark, needs: corrupt},
		{name: "ItGoesOnWhereItStopped", run: resumesDeletion, needs: faults},
		{name: "ALostResponseIsSuccess", run: lostDeletion, needs: faults},
		{name: "MeanwhileTheIDIsInUse", run: deletingInstance, needs: faults},
		{name: "AStartOfItsOwnIsNotAnsweredTwice", run: ownStartMeanwhile, needs: faults},
		{name: "ACancelMeanwhileIsAnswered", run: cancelMeanwhile, needs: faults},
		{name: "OneThatStaysIsFound", run: staysDeleting, needs: []Capability{Faults, LongTime}},
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

// wantGone fails if anything can be read of an instance and these executions of it.
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
		wantNone("ReadEnd", second(f.p.ReadEnd(f.ctx(), x)))
		for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
			for _, named := range []string{x, ""} {
				it := &provider.OrchestrationItem{InstanceID: id, Messages: []provider.InboxMessage{{Message: provider.Message{InstanceID: id, ExecutionID: named}}}}
				wantNone("ReadOrchestration", second(f.p.ReadOrchestration(f.ctx(), it, c)))
			}
		}
	}
	if slices.Contains(f.list(provider.Query{}), id) {
		f.t.Errorf("instance %q is listed", id)
	}
}

func onlyWhatIsOver(f *fixture) {
	e := f.quiet("a")
	f.wantIs(f.p.DeleteInstance(f.ctx(), "a", false), provider.ErrNotTerminal)
	t := e.commit(turnStarted(), activity(Queue))
	f.wantIs(f.p.DeleteInstance(f.ctx(), "a", false), provider.ErrNotTerminal)
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
	e.commit(turnStarted(), bulky(900<<10)) // of several parts
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

// lateAck: turns that were run before, on the head and on an older one, are conflicts, and nothing of them is sent.
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

// lateEnd: the turn that ended the instance is committed, and its status is written when the instance is being deleted, or gone.
func lateEnd(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	f.Fail(Fault{On: Send, How: Refused, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), ended(`1`))); err == nil {
		f.t.Error("a parent that was not told is no error")
	}
	o := e.read()
	for _, deleted := range []bool{false, true} {
		if deleted {
			f.remove("c")
		} else {
			f.stopDeletion("c", Fault{On: Send, How: Refused, Times: 1})
		}
		_, err := f.p.RedispatchOrchestration(f.ctx(), o, at(10))
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

// wantTold fails unless the parent of the start is told exactly this, perhaps more than once.
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
		f.t.Errorf("the parent of %q is not told", start.InstanceID)
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

// answerLost: whoever committed the end died before it told the parent. What is told is how it had ended.
func answerLost(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	f.Fail(Fault{On: Send, How: Refused, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), ended(`"paid"`))); err == nil {
		f.t.Error("a parent that was not told is no error")
	}
	f.wantIs(f.p.DeleteInstance(f.ctx(), "c", false), provider.ErrNotTerminal) // its end is not sent yet
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), `"paid"`, nil)
	f.wantGone("c", e.instance.ExecutionID)
}

// outlivesDeletion: whoever committed the turn before died before it sent what outlives the instance.
func outlivesDeletion(f *fixture) {
	e := f.quiet("a")
	f.Fail(Fault{On: Send, How: Refused, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), detached("b"))); err == nil {
		f.t.Error("an output that was not sent is no error")
	}
	f.remove("a")
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.t.Errorf("sent %s, want the start of b", text(ms))
	}
	f.wantNothingSent()
}

func outlivesAcross(f *fixture) {
	e := f.quiet("a")
	f.Fail(Fault{On: Send, How: Refused, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.continuing("x2", turnStarted(), detached("b"))); err == nil {
		f.t.Error("an output that was not sent is no error")
	}
	f.remove("a")
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageStart || ms[0].InstanceID != "b" {
		f.t.Errorf("sent %s, want the start of b", text(ms))
	}
}

// longAgo: what was started may have been deleted and forgotten since. It must not be started again.
func longAgo(f *fixture) {
	const aLongTime = 90 * 24 * time.Hour
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted(), detached("b"))
	f.messages()
	f.Pass(aLongTime)
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), "", wasDeleted())
	done := f.quiet("over")
	done.commit(turnStarted(), detached("b"), ended(`1`))
	f.messages()
	f.Pass(aLongTime)
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

func damagedDeleted(f *fixture) {
	for _, d := range []Damage{Undecodable, LaterRelease, NoEvents, PartGone, Gone} {
		for segment := range int64(4) {
			if d == PartGone && segment != 2 {
				continue
			}
			m := startMessageOf(fmt.Sprintf("%s %d", d, segment), "s1")
			m.Parent.ExecutionID = "parent of " + m.InstanceID // so that no queue takes one's answer for another's
			e := f.create(m)
			e.commit(activity(Queue))
			e.commit(bulky(900 << 10))
			e.commit(completed(2))
			late := e.turn(activity(Queue), activity(OtherQueue))
			f.Damage(e.instance.ExecutionID, segment, d)
			id := e.instance.InstanceID
			f.remove(id)
			f.wantTold(m, "", wasDeleted())
			f.wantGone(id, e.instance.ExecutionID)
			e.wantReasons("instance_deleted")
			for head := range int64(3) { // the gap, too, has no room for a turn
				late.Head.Segment = head
				_, err := f.p.AckOrchestrationItem(f.ctx(), late)
				f.wantIs(err, provider.ErrConflict)
			}
		}
	}
	if n := len(f.drain(OtherQueue)); n > 0 {
		f.t.Errorf("%d work items of turns that came too late", n)
	}
}

// damagedOver: the end can be read, what comes before cannot; and nobody was told, as the instance itself shows. The parent is told
// how it ended.
func damagedOver(f *fixture) {
	for id, told := range map[string]bool{"told": true, "not told": false} {
		m := startMessageOf(id, "s1")
		m.Parent.ExecutionID = "parent of " + id
		e := f.create(m)
		e.commit(turnStarted(), activity(Queue))
		if !told {
			f.Fail(Fault{On: Send, How: Refused, Times: 1})
		}
		_, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(completed(3), ended(`"paid"`)))
		if (err == nil) != told {
			f.t.Errorf("%s: the end: %v", id, err)
		}
		f.Damage(e.instance.ExecutionID, 1, Undecodable)
		f.must(f.p.DeleteInstance(f.ctx(), id, !told))
		f.wantTold(m, `"paid"`, nil)
		f.wantGone(id, e.instance.ExecutionID)
	}
}

// damagedEndDeleted: how it ended cannot be read. That it is over the instance says, and so its parent was told.
func damagedEndDeleted(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	e.commit(turnStarted(), ended(`"paid"`))
	f.messages()
	f.Damage(e.instance.ExecutionID, 1, Undecodable)
	f.Pass(6 * time.Minute) // else a queue takes another answer for a repetition
	f.remove("c")
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("told %s", text(ms))
	}
	f.wantGone("c", e.instance.ExecutionID)
}

// damagedWatermark: of the history nothing is left.
func damagedWatermark(f *fixture) {
	e := f.quiet("a")
	e.commit(turnStarted(), ended(`1`))
	for segment := range int64(2) {
		f.Damage(e.instance.ExecutionID, segment, Gone)
	}
	f.remove("a")
	s := startOf("a")
	s.StartID = "the next"
	in, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	f.wantConsumed("a", in.ExecutionID, 1)
}

// stopDeletion begins a forced deletion that fails midway.
func (f *fixture) stopDeletion(id string, fault Fault) {
	f.t.Helper()
	f.Fail(fault)
	err := f.p.DeleteInstance(f.ctx(), id, true)
	f.Fail(Fault{})
	if err == nil {
		f.t.Fatalf("the deletion of %q did not fail", id)
	}
}

// family is a child of two executions, with a child and an activity of its own.
func (f *fixture) family(id string) {
	f.t.Helper()
	m := startMessageOf(id, "start of "+id)
	m.Parent.ExecutionID = "parent of " + id // so that no queue takes one's answer for another's
	e := f.create(m)
	t := e.continuing("next of "+id, turnStarted(), bulky(400<<10))
	t.Next.Start.Parent = m.Parent
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	next := f.executionAfter(t)
	next.instance.ExecutionID = t.Next.ExecutionID
	mine := child()
	mine.InstanceID = "child of " + id
	next.commit(turnStarted(), mine, activity(Queue))
	f.messages()
	f.work(Queue)
}

// wantFamilyDeleted fails unless the deletion of a family has left what it should.
func (f *fixture) wantFamilyDeleted(id string) {
	f.t.Helper()
	var sent []string
	for _, m := range f.messages() {
		if what := string(m.Kind) + " " + m.InstanceID; !slices.Contains(sent, what) {
			sent = append(sent, what)
		}
	}
	slices.Sort(sent)
	if got, want := strings.Join(sent, ", "), "cancel child of "+id+", childOutcome p"; got != want {
		f.t.Errorf("%s: sent %q, want %q", id, got, want)
	}
	f.wantGone(id, "next of "+id)
	if !f.cancels("next of " + id).Of(4).Requested {
		f.t.Errorf("%s: its activity is not cancelled", id)
	}
	if _, err := f.p.StartOrchestration(f.ctx(), startOf(id)); !errors.Is(err, provider.ErrAlreadyExists) {
		f.t.Errorf("%s: its own start begins it again: %v", id, err)
	}
}

// resumesDeletion: whichever call it stops at, it goes on there when it is repeated.
func resumesDeletion(f *fixture) {
	const mostCalls = 60
	for _, on := range []Operation{Read, Write, Update, Send} {
		for n := range mostCalls {
			id := fmt.Sprintf("%s %d", on, n)
			f.family(id)
			hits := f.Fail(Fault{On: on, How: Refused, Times: 1, After: n})
			err := f.p.DeleteInstance(f.ctx(), id, true)
			failed := hits() > 0
			f.Fail(Fault{})
			if failed {
				f.wantPermanent(err)
				f.remove(id)
			} else {
				f.must(err)
			}
			f.wantFamilyDeleted(id)
			if !failed {
				break
			}
			if n == mostCalls-1 {
				f.t.Errorf("%s: more than %d calls", on, mostCalls)
			}
		}
	}
}

func lostDeletion(f *fixture) {
	for _, on := range []Operation{Write, Update, Send} {
		for n := 0; ; n++ {
			id := fmt.Sprintf("%s %d", on, n)
			f.family(id)
			hits := f.Fail(Fault{On: on, How: Lost, Times: 1, After: n})
			f.must(f.p.DeleteInstance(f.ctx(), id, true))
			lost := hits() > 0
			f.Fail(Fault{})
			f.wantFamilyDeleted(id)
			if !lost {
				break
			}
		}
	}
}

// deletingInstance: what has begun and is not finished.
func deletingInstance(f *fixture) {
	for name, fault := range map[string]Fault{
		"before its end is sent": {On: Send, How: Refused, Times: 1}, "before it is erased": {On: Update, How: Refused, Times: 1},
		"when its start is erased": {On: Write, How: Refused, Times: 1, After: 2}, "before the execution before": {On: Update, How: Refused, Times: 1, After: 1},
	} {
		f.family(name)
		f.stopDeletion(name, fault)
		f.wantStatus(name, provider.StatusDeleting)
		if in := f.instance(name); !in.Status.Terminal() || in.Name != refund {
			f.t.Errorf("%s: instance %s", name, text(in))
		}
		if ids := f.list(provider.Query{Status: provider.StatusDeleting}); !slices.Equal(ids, []string{name}) {
			f.t.Errorf("%s: listed as deleting are %q", name, ids)
		}
		for _, startID := range []string{"start of " + name, "another"} {
			s := startOf(name)
			s.StartID = startID
			_, err := f.p.StartOrchestration(f.ctx(), s)
			f.wantIs(err, provider.ErrAlreadyExists)
			_, err = f.p.CreateOrchestration(f.ctx(), startMessageOf(name, startID))
			f.wantIs(err, provider.ErrAlreadyExists)
		}
		f.must(f.p.DeleteInstance(f.ctx(), name, false)) // it is over: no force is needed to go on
		f.wantFamilyDeleted(name)
	}
}

// ownStartMeanwhile: the message that started the instance is delivered again while that is deleted. That its id is in use is not
// the answer to it; to another it is.
func ownStartMeanwhile(f *fixture) {
	f.create(startMessageOf("c", "s1"))
	f.stopDeletion("c", Fault{On: Send, How: Refused, Times: 1})
	f.must(f.p.RefuseStart(f.ctx(), startMessageOf("c", "s1")))
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("told %s", text(ms))
	}
	other := startMessageOf("c", "s2")
	other.Parent.EventID = 6
	f.must(f.p.RefuseStart(f.ctx(), other))
	if ms := f.messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeAlreadyExists {
		f.t.Errorf("told %s", text(ms))
	}
	f.remove("c")
	f.wantTold(startMessageOf("c", "s1"), "", wasDeleted())
	for _, id := range []string{"s1", "s2"} {
		_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", id))
		f.wantIs(err, provider.ErrAlreadyExists)
	}
}

// cancelMeanwhile: a parent cancels a child whose id is that of one that is being deleted.
func cancelMeanwhile(f *fixture) {
	f.quiet("c")
	f.stopDeletion("c", Fault{On: Update, How: Refused, Times: 1})
	m := startMessageOf("c", "s2")
	m.Kind, m.Reason = provider.MessageCancel, "requested"
	f.must(f.p.RefuseCancel(f.ctx(), m))
	if ms := f.messages(); len(ms) != 1 || ms[0].Error == nil || ms[0].Error.Type != history.TypeCancelled {
		f.t.Errorf("told %s", text(ms))
	}
	f.wantStatus("c", provider.StatusDeleting)
	f.remove("c")
	_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", "s2"))
	f.wantIs(err, provider.ErrAlreadyExists)
}

func staysDeleting(f *fixture) {
	f.family("a")
	f.quiet("running")
	deleting := func() (ids []string) {
		for in, err := range f.p.DeletingInstances(f.ctx()) {
			f.must(err)
			if ids = append(ids, in.InstanceID); in.Status != provider.StatusDeleting {
				f.t.Errorf("found %s", text(in))
			}
		}
		return ids
	}
	f.stopDeletion("a", Fault{On: Send, How: Refused, Times: 1})
	f.Pass(time.Minute)
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("after a minute %q stay", ids)
	}
	f.Pass(90 * time.Second)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.t.Errorf("after 2.5 minutes %q stay", ids)
	}
	f.stopDeletion("a", Fault{On: Update, How: Refused, Times: 1, After: 1}) // there was progress
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("after progress %q stay", ids)
	}
	f.Pass(3 * time.Minute)
	if ids := deleting(); !slices.Equal(ids, []string{"a"}) {
		f.t.Errorf("then %q stay", ids)
	}
	f.remove("a")
	if ids := deleting(); len(ids) > 0 {
		f.t.Errorf("when it is gone %q stay", ids)
	}
}

func idIsFree(f *fixture) {
	old := f.quiet("a")
	old.commit(turnStarted(), ended(`1`))
	f.remove("a")
	_, err := f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantIs(err, provider.ErrAlreadyExists) // its own start
	s := startOf("a")
	s.StartID = "the next"
	in, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	if in.ExecutionID == old.instance.ExecutionID || in.Status != provider.StatusPending {
		f.t.Errorf("started %s", text(in))
	}
	next := &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
	t := next.commit(turnStarted(), activity(Queue))
	next.wantSegments(t)
	f.wantStatus("a", provider.StatusRunning)
	for _, err := range f.p.ReadHistory(f.ctx(), "a", old.instance.ExecutionID, 0) {
		f.wantIs(err, provider.ErrNotFound)
	}
	f.remove("a") // and again
	for _, id := range []string{"start of a", "the next"} {
		s.StartID = id
		_, err := f.p.StartOrchestration(f.ctx(), s)
		f.wantIs(err, provider.ErrAlreadyExists)
	}
	f.create(startMessageOf("a", "a third"))
}

func refusedStaysRefused(f *fixture) {
	f.quiet("c")
	f.must(f.p.RefuseStart(f.ctx(), startMessageOf("c", "refused")))
	f.remove("c")
	f.must(f.p.RefuseStart(f.ctx(), startMessageOf("c", "refused later")))
	f.create(startMessageOf("c", "another"))
	f.remove("c")
	for _, id := range []string{"start of c", "refused", "refused later", "another"} {
		_, err := f.p.CreateOrchestration(f.ctx(), startMessageOf("c", id))
		f.wantIs(err, provider.ErrAlreadyExists)
	}
}

// lastLife: messages up to the one that the last life consumed are not for the next, whoever starts it (R3).
func lastLife(f *fixture) {
	const consumed = 1000 // of more digits than what the start message has: these are numbers, not texts
	for id, end := range map[string][]history.Event{"over": {turnStarted(), ended(`1`)}, "forced": {turnStarted()}} {
		e := f.quiet(id)
		t := e.turn(end...)
		t.Watermark = at(consumed)
		e.ack(t)
		f.remove(id)
		s := startOf(id)
		s.StartID = "by a client"
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		f.wantConsumed(id, in.ExecutionID, consumed)
		f.remove(id) // a life that has consumed nothing
		for _, number := range []int{9, consumed + 1} {
			m := startMessageOf(id, fmt.Sprint("by the message at ", number))
			m.Position = at(number)
			o, err := f.p.CreateOrchestration(f.ctx(), m)
			f.must(err)
			f.wantEqual("position", o.Head.Watermark, at(max(number, consumed)))
			f.wantConsumed(id, o.Head.ExecutionID, max(number, consumed))
			f.remove(id)
		}
		m := startMessageOf(id, "from another inbox") // whose numbers cannot be compared
		m.Position = provider.Position{Inbox: "another", Sequence: "1"}
		o, err := f.p.CreateOrchestration(f.ctx(), m)
		f.must(err)
		f.wantEqual("position", o.Head.Watermark, m.Position)
	}
}

// wantConsumed fails unless an execution that was just started begins behind the message at number.
func (f *fixture) wantConsumed(id, executionID string, number int) {
	f.t.Helper()
	o, err := f.p.ReadOrchestration(f.ctx(), &provider.OrchestrationItem{InstanceID: id}, provider.Strong)
	f.must(err)
	if o.Head != (provider.Head{ExecutionID: executionID, Watermark: at(number)}) {
		f.t.Errorf("%s: the next life begins at %+v, want behind the message at %d", id, o.Head, number)
	}
}

// deletedByMany: all of them find it gone, and none takes the next life for it.
func deletedByMany(f *fixture) {
	f.family("a")
	const many = 8
	errs := make(chan error, many)
	for range many {
		go func() { errs <- f.p.DeleteInstance(f.ctx(), "a", true) }()
	}
	succeeded := 0
	for range many {
		if err := <-errs; err == nil {
			succeeded++
		} else if !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrConflict) {
			f.t.Error(err)
		}
	}
	if succeeded == 0 {
		f.t.Error("nobody has deleted it")
	}
	f.wantFamilyDeleted("a")
}
