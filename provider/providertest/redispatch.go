package providertest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A redispatch reads the outputs of a committed turn from its segment and sends those that are not settled (R4, R9).
func redispatch() group {
	return group{"redispatch", []testCase{
		{name: "OnlyWhatIsUnsettledIsSentAgain", run: onlyUnsettled},
		{name: "FromTheSegmentThatCoversTheMessage", run: fromCovering},
		{name: "AWatermarkOfAnotherInboxCoversNothing", run: otherInbox},
		{name: "WhatIsOverSendsNothing", run: overSendsNothing},
		{name: "WorkItemsAndTimersAreTheSameAgain", run: sameAgain},
		{name: "WhatIsRefusedIsRefusedAgain", run: refusedAgain},
		{name: "AStatusThatWasNotWrittenIsWritten", run: statusRepaired, needs: []Capability{Faults}},
		{name: "AStatusThatWasNotWrittenIsRefreshed", run: statusRefreshed, needs: []Capability{Faults, VirtualTime}},
		{name: "AnEndIsNotRefreshed", run: endNotRefreshed, needs: []Capability{Faults}},
		{name: "AnEndThatWasNotWrittenIsWritten", run: endRepaired, needs: []Capability{Faults}},
		{name: "UnsentOutputsAreSentAndTheEndIsWritten", run: unsentSent, needs: []Capability{Faults}},
		{name: "AStaleViewDoesNotReviveWhatIsOver", run: noRevival},
		{name: "WhatRanInlineIsNotSent", run: whatRanInlineIsNotSent},
		{name: "AStatusIsLeftToALaterTurn", run: statusesLeft},
		{name: "AttemptsOfAnInlineActivityGoOnInItsQueue", run: attemptsGoOn},
	}}
}

// since selects the turns from the one that consumed the message at a position.
func since(at provider.Position) provider.RedispatchFrom {
	return provider.RedispatchFrom{Position: at}
}

func (f *fixture) redispatch(e *execution, from provider.Position) []provider.OutputFailure {
	f.t.Helper()
	refused, err := f.p.RedispatchOrchestration(f.ctx(), e.read(), since(from))
	f.must(err)
	return refused
}

// wantWork fails unless the queue has work items of exactly these activities.
func (f *fixture) wantWork(queue string, want ...int64) {
	f.t.Helper()
	got := []int64{}
	for _, w := range f.work(queue) {
		got = append(got, w.ActivityID)
	}
	f.wantEqual("activities in "+queue, got, append([]int64{}, want...))
}

func onlyUnsettled(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue), activity(Queue), timer(f.now()), timer(f.now())) // 3 4 5, timers 6 7
	e.commit(completed(3), history.Event{Kind: history.ActivityFailed, SourceEventID: 5, Attempt: 1, Error: &history.Failure{Type: "T", Message: "m"}},
		history.Event{Kind: history.TimerFired, SourceEventID: 6})
	f.work(Queue)
	f.timers()
	f.redispatch(e, at(1))
	f.wantWork(Queue, 4)
	if ts := f.timers(); len(ts) != 1 || ts[0].TimerID != 7 {
		f.t.Errorf("timers %s, want 7", text(ts))
	}
}

// A repeated dispatch can omit what the previous one sent, so each test uses its own instance.
func fromCovering(f *fixture) {
	for from, want := range map[int][]int64{0: {2, 3, 4}, 1: {2, 3, 4}, 2: {3, 4}, 3: {4}, 4: nil} {
		e := f.start(fmt.Sprint("from-", from))
		for range 3 {
			e.commit(activity(Queue)) // 2, 3 and 4, by the messages at 1, 2 and 3
		}
		f.wantWork(Queue, 2, 3, 4)
		f.redispatch(e, at(from))
		f.wantWork(Queue, want...)
	}
}

func otherInbox(f *fixture) {
	e := f.start("a")
	e.commit(activity(Queue))
	f.work(Queue)
	f.redispatch(e, provider.Position{Inbox: "another", Sequence: "1"})
	f.wantNothingSent()
}

func overSendsNothing(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), timer(f.now()))
	e.commit(ended(`1`))
	f.work(Queue)
	f.timers()
	f.redispatch(e, at(1))
	f.wantNothingSent()
	f.wantStatus("a", provider.StatusCompleted)
}

func sameAgain(f *fixture) {
	e := f.start("a")
	due := f.now().Add(400 * time.Millisecond)
	e.commit(turnStarted(), activity(Queue), activity(OtherQueue), timer(due))
	bodies := func() (all []string) {
		for _, queue := range []string{Queue, OtherQueue, provider.QueueTimers} {
			for _, r := range f.drain(queue) {
				all = append(all, r.Body)
			}
		}
		return all
	}
	first := bodies()
	again := make([]string, len(first))
	for i, body := range first {
		if again[i] = body; i < 2 { // a resent work item differs only in this mark
			again[i] = strings.Replace(body, `,"token":`, `,"again":true,"token":`, 1)
		}
	}
	f.redispatch(e, at(1))
	f.wantEqual("sent again", bodies(), again)
	if len(first) != 3 {
		f.t.Errorf("%d messages, want 3", len(first))
	}
	f.wantStatus("a", provider.StatusRunning)
}

func refusedAgain(f *fixture) {
	e := f.start("a")
	t := e.turn(turnStarted(), activity("nowhere"), activity(Queue))
	refused, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.work(Queue)
	f.wantEqual("rejected again", f.redispatch(e, at(1)), refused)
	f.wantWork(Queue, 4)
}

func statusRepaired(f *fixture) {
	e := f.start("a")
	f.unwritten(e, turnStarted(), activity(Queue))
	f.wantStatus("a", provider.StatusPending)
	f.redispatch(e, at(1))
	f.wantStatus("a", provider.StatusRunning)
	if in := f.instance("a"); in.Version != v1 {
		f.t.Errorf("version %q, want that of the first turn", in.Version)
	}
}

// unwritten commits a turn whose status cannot be written. The commit succeeds nevertheless.
func (f *fixture) unwritten(e *execution, events ...history.Event) {
	f.t.Helper()
	f.Fail(Fault{Operation: Update, Failure: Rejected, Times: 1})
	_, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(events...))
	f.must(err)
}

func statusRefreshed(f *fixture) {
	e := f.start("a")
	f.unwritten(e, turnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"on it"`)}, activity(Queue))
	f.Advance(30 * time.Second)
	ts := f.timers()
	if len(ts) != 1 || ts[0].Refresh != 1 || ts[0].Segment != 1 || ts[0].InstanceID != "a" || ts[0].ExecutionID != e.head.ExecutionID {
		f.t.Fatalf("timers %s, want a refresh", text(ts))
	}
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: e.head.ExecutionID, Segment: 1, TimerID: ts[0].TimerID, Refresh: 1}
	f.Fail(Fault{Operation: Update, Failure: Rejected, Times: 1})
	if f.p.RefreshStatus(f.ctx(), &wake) == nil {
		f.t.Error("no error although the status refresh failed")
	}
	f.Advance(time.Minute)
	if ts = f.timers(); len(ts) != 1 || ts[0].Refresh != 2 {
		f.t.Errorf("timers %s, want another refresh", text(ts))
	}
	f.must(f.p.RefreshStatus(f.ctx(), &wake))
	if in := f.instance("a"); in.Status != provider.StatusRunning || in.Version != v1 || string(in.CustomStatus) != `"on it"` {
		f.t.Errorf("custom status after the refresh: %s", text(in))
	}
	f.wantWork(Queue, 4)
	f.must(f.p.RefreshStatus(f.ctx(), &wake))
	f.wantNothingSent()
}

// The last turn writes the terminal status, after all outputs were sent (R9).
func endNotRefreshed(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	f.work(Queue)
	f.Fail(Fault{Operation: Update, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(completed(3), ended(`1`))); err == nil {
		f.t.Error("no error although the final status was not written")
	}
	f.must(f.p.RefreshStatus(f.ctx(), &provider.Message{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: e.head.ExecutionID, Segment: 1, TimerID: 2, Refresh: 1}))
	f.wantStatus("a", provider.StatusRunning)
	f.wantNothingSent()
}

func endRepaired(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	f.work(Queue)
	f.Fail(Fault{Operation: Update, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(completed(3), ended(`1`))); !errors.Is(err, provider.ErrDispatchIncomplete) {
		f.t.Errorf("redispatch of a final status that was not written: %v", err)
	}
	f.wantStatus("a", provider.StatusRunning)
	f.redispatch(e, at(2))
	f.wantStatus("a", provider.StatusCompleted)
	f.wantNothingSent()
}

func unsentSent(f *fixture) {
	e := f.start("a")
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	if _, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), activity(Queue))); !errors.Is(err, provider.ErrDispatchIncomplete) {
		f.t.Errorf("redispatch of an output that was not sent: %v", err)
	}
	f.wantNothingSent()
	f.redispatch(e, at(1))
	f.wantWork(Queue, 3)
	f.wantStatus("a", provider.StatusRunning)
}

// A frozen function continues and redispatches what it read long ago.
func noRevival(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	stale := e.read()
	e.commit(completed(3), ended(`1`))
	_, err := f.p.RedispatchOrchestration(f.ctx(), stale, since(at(1)))
	f.must(err)
	f.wantStatus("a", provider.StatusCompleted)
}
