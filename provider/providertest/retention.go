package providertest

import (
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Retention deletes instances some days after their end, and past executions of running ones (R21).
func retention() group {
	return group{"retention", []testCase{
		{name: "WhatHasNoneIsNeverDue", run: neverDue, needs: []Capability{VirtualTime}},
		{name: "AnEndIsDueWhenItsRetentionIsOver", run: endDue, needs: []Capability{VirtualTime}},
		{name: "PastExecutionsAreErasedOldestFirst", run: pastDue, needs: []Capability{VirtualTime}},
		{name: "NothingDueIsNothing", run: nothingDue, long: true},
	}}
}

const aDay = 24 * time.Hour

// due returns the IDs that DueInstances finds.
func (f *fixture) due() (ids []string) {
	f.t.Helper()
	for id, err := range f.p.DueInstances(f.ctx()) {
		f.must(err)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// end commits an end, after which the instance is kept for the given time.
func (e *execution) end(retention time.Duration) {
	e.f.t.Helper()
	t := e.turn(turnStarted(), history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload("1")})
	t.Retention = retention
	if _, err := e.f.p.AckOrchestrationItem(e.f.ctx(), t); err != nil {
		e.f.t.Fatal(err)
	}
}

func neverDue(f *fixture) {
	f.start("a").end(0)
	f.start("running")
	f.Advance(400 * aDay)
	f.wantEqual("due", f.due(), []string(nil))
	done, err := f.p.ApplyRetention(f.ctx(), "a")
	f.must(err)
	f.wantEqual("retired", done, provider.RetentionResult{})
	f.wantStatus("a", provider.StatusCompleted)
}

func endDue(f *fixture) {
	a := f.start("a")
	a.end(3 * aDay)
	f.start("b").end(10 * aDay)
	f.Advance(2 * aDay)
	f.wantEqual("due after two days", f.due(), []string(nil))
	done, err := f.p.ApplyRetention(f.ctx(), "a")
	f.must(err)
	f.wantEqual("deleted before its retention expired", done, provider.RetentionResult{})
	f.Advance(2 * aDay)
	f.wantEqual("due after four days", f.due(), []string{"a"})
	done, err = f.p.ApplyRetention(f.ctx(), "a")
	f.must(err)
	f.wantEqual("retired", done, provider.RetentionResult{Instance: true})
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
	_, err = f.p.StartOrchestration(f.ctx(), provider.Start{InstanceID: "a", Name: order, Input: history.Payload("1"), StartID: a.instance.StartID})
	f.wantIs(err, provider.ErrAlreadyExists) // that start was made, and cannot be made again
	f.wantEqual("due then", f.due(), []string(nil))
	f.Advance(60 * aDay)
	f.wantEqual("due after two months", f.due(), []string{"b"})
}

func pastDue(f *fixture) {
	e := f.start("a")
	first := e.head.ExecutionID
	e.commit(turnStarted())
	var ids []string
	for range 4 {
		f.Advance(20 * aDay)
		next := provider.NewExecutionID(f.now(), "a", e.head.ExecutionID)
		t := e.continuing(next, turnStarted())
		t.Retention = 30 * aDay
		if len(ids) == 0 {
			t.Events = t.Events[1:] // it has had its first turn
		}
		if _, err := f.p.AckOrchestrationItem(f.ctx(), t); err != nil {
			f.t.Fatal(err)
		}
		e = f.executionAfter(t)
		ids = append(ids, next)
	}
	f.wantEqual("due", f.due(), []string{"a"})
	done, err := f.p.ApplyRetention(f.ctx(), "a")
	f.must(err)
	f.wantEqual("retired", done, provider.RetentionResult{Executions: 2})
	var left []string
	for x, err := range f.p.ListExecutions(f.ctx(), "a") {
		f.must(err)
		left = append(left, x.ExecutionID)
	}
	f.wantEqual("left", left, []string{ids[3], ids[2], ids[1]})
	for _, erased := range []string{first, ids[0]} {
		_, err := f.p.ReadTerminalEvent(f.ctx(), erased)
		f.wantIs(err, provider.ErrNotFound)
	}
	f.wantEqual("due then", f.due(), []string(nil))
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
}

func nothingDue(f *fixture) {
	f.wantEqual("due", f.due(), []string(nil))
	f.start("a").end(aDay)
	for _, id := range []string{"a", "nobody"} {
		done, err := f.p.ApplyRetention(f.ctx(), id)
		f.must(err)
		f.wantEqual("retired", done, provider.RetentionResult{})
	}
	f.wantStatus("a", provider.StatusCompleted)
}
