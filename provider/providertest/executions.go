package providertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Continue-as-new ends one execution and starts the next one atomically (R3).
func executions() group {
	return group{"executions", []testCase{
		{name: "ContinueAsNewMakesTheNext", run: makesTheNext},
		{name: "TheNextBeginsWithWhatIsCarriedOver", run: carriedOver},
		{name: "AFirstTurnMayContinue", run: firstTurnContinues},
		{name: "OfTwoTurnsOnOneHeadOneIsCommitted", run: func(f *fixture) { continueOrNot(f, true) }},
		{name: "TheOtherMayWin", run: func(f *fixture) { continueOrNot(f, false) }},
		{name: "ALostResponseIsSuccess", run: lostContinue, needs: []Capability{Faults}},
		{name: "ARefusedCommitLeavesNothing", run: refusedContinue, needs: []Capability{Faults}},
		{name: "ALargeOneContinuesWhole", run: func(f *fixture) { largeContinue(f, 900<<10, 900<<10) }},
		{name: "WhatDoesNotFitOneCommitIsTooLarge", run: continueTooLarge},
		{name: "AMessageForAnOldOneReadsTheCurrent", run: oldMessage},
		{name: "TheHistoryOfAnOldOneStays", run: oldHistory},
		{name: "ExecutionsAreListedNewestFirst", run: listExecutions},
		{name: "AnExecutionIsOfOneInstance", run: foreignExecution},
		{name: "WhatOutlivesAnExecutionIsSentAgainAcross", run: redispatchAcross, needs: []Capability{VirtualTime}},
		{name: "WhatOutlivesAnExecutionIsSentAgainSinceATime", run: redispatchSince, needs: []Capability{VirtualTime}},
		{name: "AnUnsentStartIsFoundAcross", run: unsentAcross, needs: []Capability{Faults}},
		{name: "ALateStatusOfAnOldOneIsNotWritten", run: lateStatus},
		{name: "TheCustomStatusStays", run: customStatusStays},
		{name: "TheLastOneEndsTheInstance", run: lastEnds},
	}}
}

// continuing returns the turn that ends e and continues as next.
func (e *execution) continuing(next string, events ...history.Event) *provider.Turn {
	t := e.turn(append(events, history.Event{Kind: history.OrchestrationContinuedAsNew, ExecutionID: next})...)
	t.Next = &provider.Successor{ExecutionID: next, Start: history.Event{
		ID: 1, Kind: history.OrchestrationStarted, Time: e.f.now(), Name: order, Input: history.Payload(`{"n":2}`),
		StartID: e.instance.StartID, Number: e.instance.ExecutionNumber + 1,
	}}
	return t
}

// continueAs commits such a turn and returns the next execution.
func (e *execution) continueAs(next string, events ...history.Event) *execution {
	e.f.t.Helper()
	t := e.continuing(next, events...)
	refused, err := e.f.p.AckOrchestrationItem(e.f.ctx(), t)
	e.f.must(err)
	if len(refused) > 0 {
		e.f.t.Fatalf("rejected outputs: %v", refused)
	}
	return e.f.executionAfter(t)
}

// executionAfter returns the execution that t continued as.
func (f *fixture) executionAfter(t *provider.Turn) *execution {
	f.t.Helper()
	return &execution{f: f, instance: f.instance(t.InstanceID), head: t.After(), next: 2, base: number(t.Watermark)}
}

func makesTheNext(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	next := e.continueAs("x2", completed(3))
	in := f.instance("a")
	if in.ExecutionID != "x2" || in.ExecutionNumber != 2 || in.Status != provider.StatusRunning || in.Version != v1 || in.CreatedAt != e.instance.CreatedAt {
		f.t.Errorf("instance %s", text(in))
	}
	o := next.read()
	if o.Previous != e.instance.ExecutionID || len(o.Segments) != 1 || o.Head != (provider.Head{ExecutionID: "x2", Watermark: at(2)}) {
		f.t.Errorf("execution read: %s", text(o))
	}
	t := next.turn(turnStarted(), activity(Queue))
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantStatus("a", provider.StatusRunning)
	if ws := f.work(Queue); len(ws) != 2 || ws[0].ExecutionID == ws[1].ExecutionID {
		f.t.Errorf("work items %s, want one of each execution", text(ws))
	}
}

func carriedOver(f *fixture) {
	e := f.start("a")
	t := e.continuing("x2", turnStarted())
	t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", EventID: "1", Data: history.Payload(`[1]`)}, {Name: "n"}}
	t.Next.Start.EventIDs, t.Next.Start.Tags = []string{"0", "1"}, map[string]string{"k": "v"}
	t.Next.Start.Parent = &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 7}
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	next := f.executionAfter(t)
	f.wantEqual("start", next.log(), []history.Event{t.Next.Start})
	f.wantEqual("by the start", next.read().Start(), &t.Next.Start)
}

func firstTurnContinues(f *fixture) {
	e := f.start("a")
	next := e.continueAs("x2", turnStarted())
	if next.instance.Status != provider.StatusRunning || next.instance.Version != v1 {
		f.t.Errorf("instance %s", text(next.instance))
	}
}

// continueOrNot: one of two turns continues as new.
func continueOrNot(f *fixture, wins bool) {
	e := f.start("a")
	other, continues := e.turn(turnStarted(), activity(OtherQueue)), e.continuing("x2", turnStarted(), detached("b"))
	winner, loser := other, continues
	if wins {
		winner, loser = continues, other
	}
	_, err := f.p.AckOrchestrationItem(f.ctx(), winner)
	f.must(err)
	_, err = f.p.AckOrchestrationItem(f.ctx(), loser)
	f.wantIs(err, provider.ErrConflict)
	if got := f.instance("a").ExecutionID == "x2"; got != wins {
		f.t.Errorf("instance continued as new: %v, want %v", got, wins)
	}
	if n := len(f.work(OtherQueue)); (n == 0) != wins {
		f.t.Errorf("%d work items", n)
	}
	if n := len(f.messages()); (n == 2) != wins {
		f.t.Errorf("%d messages besides the wake, want none", n-1)
	}
	for _, err := range f.p.ReadHistory(f.ctx(), "a", "x2", 0) {
		if (err == nil) != wins {
			f.t.Errorf("history of the next execution: %v", err)
		}
	}
}

func lostContinue(f *fixture) {
	e := f.start("a")
	hits := f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
	e.continueAs("x2", turnStarted())
	if hits() != 1 || f.instance("a").ExecutionID != "x2" {
		f.t.Errorf("%d responses lost, execution %s", hits(), f.instance("a").ExecutionID)
	}
}

func refusedContinue(f *fixture) {
	e := f.start("a")
	f.Fail(Fault{Operation: Write, Failure: Rejected, Times: 1})
	_, err := f.p.AckOrchestrationItem(f.ctx(), e.continuing("x2", turnStarted(), detached("b")))
	f.wantPermanent(err)
	e.wantSegments()
	if in := f.instance("a"); in.ExecutionID != e.instance.ExecutionID || in.Status != provider.StatusPending {
		f.t.Errorf("instance %s", text(in))
	}
	if n := len(f.messages()); n != 1 {
		f.t.Errorf("%d messages, want the wake", n)
	}
}

func largeContinue(f *fixture, last, carried int) {
	e := f.start("a")
	t := e.continuing("x2", turnStarted(), bulky(last))
	t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", Data: noise(carried)}}
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	next := f.executionAfter(t)
	f.wantEqual("start", next.log(), []history.Event{t.Next.Start})
	f.wantEqual("turn", e.log()[1:], t.Events)
}

func continueTooLarge(f *fixture) {
	e := f.start("a")
	t := e.continuing("x2", turnStarted(), bulky(2500<<10))
	t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", Data: noise(2500 << 10)}}
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.wantIs(err, provider.ErrTooLarge)
	e.wantSegments()
	f.wantStatus("a", provider.StatusPending)
}

func oldMessage(f *fixture) {
	first := f.start("a")
	second := first.continueAs("x2", turnStarted())
	third := second.continueAs("x3", turnStarted())
	for _, e := range []*execution{first, second, third} {
		for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
			o, err := f.p.ReadOrchestration(f.ctx(), e.item(), c)
			f.must(err)
			if o.Head != third.head {
				f.t.Errorf("for execution %s read %+v, want the current %+v", e.instance.ExecutionID, o.Head, third.head)
			}
		}
	}
}

func oldHistory(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	before := e.log()
	e.continueAs("x2", completed(3))
	after := e.log()
	f.wantEqual("history before", after[:len(before)], before)
	last := after[len(after)-1]
	if len(after) != len(before)+2 || last.Kind != history.OrchestrationContinuedAsNew || last.ExecutionID != "x2" {
		f.t.Errorf("history ends with %s", text(last))
	}
	end, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
	f.must(err)
	f.wantEqual("end", end, last)
}

func listExecutions(f *fixture) {
	e := f.start("a")
	want := []string{e.instance.ExecutionID}
	for _, id := range []string{"x2", "x3", "x4"} {
		e = e.continueAs(id, turnStarted())
		want = append(want, id)
	}
	slices.Reverse(want)
	var got []string
	for x, err := range f.p.ListExecutions(f.ctx(), "a") {
		f.must(err)
		if got = append(got, x.ExecutionID); x.Number != int64(len(want)-len(got)+1) || x.StartedAt.IsZero() {
			f.t.Errorf("execution %s", text(x))
		}
	}
	f.wantEqual("executions", got, want)
	for _, err := range f.p.ListExecutions(f.ctx(), "nobody") {
		f.wantIs(err, provider.ErrNotFound)
	}
}

func foreignExecution(f *fixture) {
	a, b := f.start("a"), f.start("b")
	for _, err := range f.p.ReadHistory(f.ctx(), "b", a.instance.ExecutionID, 0) {
		f.wantIs(err, provider.ErrNotFound)
	}
	it := a.item()
	it.InstanceID = "b"
	o, err := f.p.ReadOrchestration(f.ctx(), it, provider.Strong)
	f.must(err)
	if o.Head != b.head {
		f.t.Errorf("instance b has head %+v, want its own %+v", o.Head, b.head)
	}
}

// The message at 1 was consumed two executions ago. All later outputs, and those that outlive their execution, are sent
// again.
func redispatchAcross(f *fixture) {
	for from, want := range map[int]string{1: "b c d", 2: "c d", 3: "d", 4: ""} {
		f.wantAcross(fmt.Sprint("from-", from), want, func([]time.Time) provider.RedispatchFrom { return since(at(from)) })
	}
}

// The same with a time: the outputs of the turn that was the last one at that time are the first that are sent again.
func redispatchSince(f *fixture) {
	for turns, want := range map[int]string{0: "b c d", 1: "b c d", 2: "c d", 3: "d", 4: ""} {
		f.wantAcross(fmt.Sprint("after-", turns), want, func(had []time.Time) provider.RedispatchFrom { return provider.RedispatchFrom{HeadAt: had[turns]} })
	}
}

// wantAcross lets an instance run three executions in four turns, each of which but the last starts another instance.
// It fails unless the wanted starts are sent again. had contains the times after each turn.
func (f *fixture) wantAcross(id, want string, from func(had []time.Time) provider.RedispatchFrom) {
	f.t.Helper()
	var had []time.Time
	pass := func() {
		f.Advance(time.Minute)
		had = append(had, f.now())
		f.Advance(time.Minute)
	}
	e := f.start(id)
	pass()
	e.commit(turnStarted(), activity(Queue), detached("b"))
	pass()
	next := e.continueAs(id+"-x2", detached("c"), activity(Queue))
	pass()
	last := next.continueAs(id+"-x3", turnStarted(), detached("d"))
	pass()
	_, err := f.p.AckOrchestrationItem(f.ctx(), last.turn(turnStarted(), activity(Queue)))
	f.must(err)
	pass()
	f.messages()
	f.work(Queue)
	f.Advance(6 * time.Minute) // otherwise a queue takes it for a repetition

	_, err = f.p.RedispatchOrchestration(f.ctx(), last.read(), from(had))
	f.must(err)
	var starts []string
	for _, m := range f.messages() {
		starts = append(starts, m.InstanceID)
	}
	slices.Sort(starts)
	if got := strings.Join(starts, " "); got != want {
		f.t.Errorf("%s: started %q, want %q", id, got, want)
	}
	if ws := f.work(Queue); len(ws) != 1 || ws[0].ExecutionID != id+"-x3" {
		f.t.Errorf("%s: work items %s, want that of the current execution", id, text(ws))
	}
}

func unsentAcross(f *fixture) {
	e := f.start("a")
	f.messages()
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	t := e.continuing("x2", turnStarted(), detached("b"))
	if _, err := f.p.AckOrchestrationItem(f.ctx(), t); err == nil {
		f.t.Error("no error although an output was not sent")
	}
	next := f.executionAfter(t)
	f.redispatch(next, at(1))
	if ms := f.messages(); len(ms) != 1 || ms[0].InstanceID != "b" {
		f.t.Errorf("sent again: %s", text(ms))
	}
	f.wantStatus("a", provider.StatusRunning)
}

func lateStatus(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"old"`)})
	stale := e.read()
	next := e.continueAs("x2", history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"new"`)})
	_, err := f.p.RedispatchOrchestration(f.ctx(), stale, since(at(1)))
	f.must(err)
	if in := f.instance("a"); in.ExecutionID != next.head.ExecutionID || string(in.CustomStatus) != `"new"` {
		f.t.Errorf("instance %s", text(in))
	}
}

func customStatusStays(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`1`)})
	next := e.continueAs("x2", activity(Queue))
	if got := string(next.instance.CustomStatus); got != "1" {
		f.t.Errorf("custom status %s, want that of the previous execution", got)
	}
	_, err := f.p.AckOrchestrationItem(f.ctx(), next.turn(turnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`2`)}))
	f.must(err)
	if got := string(f.instance("a").CustomStatus); got != "2" {
		f.t.Errorf("custom status %s, want that of the current execution", got)
	}
}

func lastEnds(f *fixture) {
	e := f.start("a")
	for range 2 { // more turns than the next execution will have
		e.commit(turnStarted())
	}
	next := e.continueAs("x2")
	_, err := f.p.AckOrchestrationItem(f.ctx(), next.turn(turnStarted(), ended(`1`)))
	f.must(err)
	f.wantStatus("a", provider.StatusCompleted)
}
