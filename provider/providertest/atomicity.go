package providertest

import (
	"errors"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A turn commits completely or not at all, and only one of the turns on a head commits (I1, R7).
func atomicity() group {
	return group{"atomicity", []testCase{
		{name: "ATurnCommitsWhole", run: aTurnCommitsWhole},
		{name: "TheEndAndItsOutputsCommitTogether", run: endAndOutputs},
		{name: "OfTwoTurnsOnOneHeadOneIsCommitted", run: func(f *fixture) { oneOfTwo(f, activity(Queue), ended(`1`)) }},
		{name: "ALargeTurnLosesWhole", run: func(f *fixture) { oneOfTwo(f, activity(Queue), bulky(900<<10)) }},
		{name: "ALargeTurnWinsWhole", run: func(f *fixture) { oneOfTwo(f, bulky(900<<10), activity(Queue)) }},
		{name: "OfTwoLargeTurnsOneIsCommitted", run: func(f *fixture) { oneOfTwo(f, bulky(900<<10), bulky(800<<10)) }},
		{name: "OfManyConcurrentTurnsOneIsCommitted", run: oneOfMany},
		{name: "AnOldHeadIsAConflict", run: oldHead},
		{name: "ALostResponseIsSuccess", run: func(f *fixture) { lostResponse(f, activity(Queue)) }, needs: []Capability{Faults}},
		{name: "ALostResponseOfALargeTurnIsSuccess", run: func(f *fixture) { lostResponse(f, bulky(900<<10)) }, needs: []Capability{Faults}},
		{name: "ARefusedCommitLeavesNothing", run: refusedCommit, needs: []Capability{Faults}},
		{name: "WhatIsNotSentIsFoundInTheSegment", run: unsentOutputs, needs: []Capability{Faults}},
	}}
}

func aTurnCommitsWhole(f *fixture) {
	e := f.start("a")
	t := e.commit(turnStarted(), activity(Queue), activity(OtherQueue), activity(Queue), timer(f.now()))
	e.wantSegments(t)
	if n, other := f.work(Queue), f.work(OtherQueue); len(n) != 2 || len(other) != 1 {
		f.t.Errorf("%d and %d work items, want 2 and 1", len(n), len(other))
	}
	if n := f.timers(); len(n) != 1 {
		f.t.Errorf("%d timers, want 1", len(n))
	}
	f.wantStatus("a", provider.StatusRunning)
}

func endAndOutputs(f *fixture) {
	e := f.start("a")
	t := e.commit(turnStarted(), detached("b"), activity(Queue), timer(f.now()), child(), ended(`"out"`))
	e.wantSegments(t)
	f.wantStatus("a", provider.StatusCompleted)
	if ms := f.messages(); len(ms) != 2 || ms[1].InstanceID != "b" || ms[1].Kind != provider.MessageStart || !ms[1].Detached {
		f.t.Errorf("inbox messages besides the wake: %s, want the start of the detached orchestration", text(ms))
	}
	f.wantNothingSent() // only work that the execution still waits for
}

func oneOfTwo(f *fixture, first, second history.Event) {
	e := f.start("a")
	winner, loser := e.turn(turnStarted(), first), e.turn(turnStarted(), activity(OtherQueue), timer(f.now()), second)
	_, err := f.p.AckOrchestrationItem(f.ctx(), winner)
	f.must(err)
	f.work(Queue)
	_, err = f.p.AckOrchestrationItem(f.ctx(), loser)
	f.wantIs(err, provider.ErrConflict)
	e.wantSegments(winner)
	f.wantNothingSent()
	f.wantStatus("a", provider.StatusRunning)
}

func oneOfMany(f *fixture) {
	e := f.start("a")
	const rivals = 12
	turns, errs := make([]*provider.Turn, rivals), make([]error, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		turns[i] = e.turn(append([]history.Event{turnStarted()}, repeat(i+1, activity(Queue))...)...)
		wg.Go(func() { _, errs[i] = f.p.AckOrchestrationItem(f.ctx(), turns[i]) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			f.t.Errorf("turns %d and %d were both committed", winner, i)
		case err == nil:
			winner = i
		default:
			f.wantIs(err, provider.ErrConflict)
		}
	}
	if winner < 0 {
		f.t.Fatal("no turn was committed")
	}
	e.wantSegments(turns[winner])
	if n := len(f.work(Queue)); n != winner+1 {
		f.t.Errorf("%d work items, want the %d of the committed turn", n, winner+1)
	}
}

func oldHead(f *fixture) {
	e := f.start("a")
	old := *e
	one, two := e.commit(turnStarted()), e.commit(activity(Queue))
	f.work(Queue)
	for range 2 {
		_, err := f.p.AckOrchestrationItem(f.ctx(), old.turn(turnStarted(), ended(`1`)))
		f.wantIs(err, provider.ErrConflict)
		old.head.Segment++
	}
	e.wantSegments(one, two)
	f.wantStatus("a", provider.StatusRunning)
	f.wantNothingSent()
}

func lostResponse(f *fixture, event history.Event) {
	e := f.start("a")
	hits := f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
	t := e.commit(turnStarted(), event)
	e.wantSegments(t)
	if hits() != 1 {
		f.t.Errorf("%d responses lost, want 1", hits())
	}
	f.wantStatus("a", provider.StatusRunning)
}

func refusedCommit(f *fixture) {
	e := f.start("a")
	f.Fail(Fault{Operation: Write, Failure: Rejected, Times: 1})
	t := e.turn(turnStarted(), activity(Queue), timer(f.now()), ended(`1`))
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.wantPermanent(err)
	if errors.Is(err, provider.ErrConflict) {
		f.t.Error("a rejected call is reported as a conflict")
	}
	e.wantSegments()
	f.wantNothingSent()
	f.wantStatus("a", provider.StatusPending)
}

// The segment is the outbox: an error after the commit loses no output (R9).
func unsentOutputs(f *fixture) {
	e := f.start("a")
	hits := f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	t := e.turn(turnStarted(), detached("b"), ended(`1`))
	if _, err := f.p.AckOrchestrationItem(f.ctx(), t); err == nil || errors.Is(err, provider.ErrConflict) {
		f.t.Errorf("error of a turn whose message was rejected: %v", err)
	}
	e.wantSegments(t)
	if hits() != 1 {
		f.t.Errorf("%d sends rejected, want 1", hits())
	}
	// The status is written last, because the ID may be used again only when all outputs were accepted.
	f.wantStatus("a", provider.StatusPending)
}
