package providertest

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Histories are read as they were written.
func histories() group {
	return group{"history", []testCase{
		{name: "EveryKindOfEventRoundTrips", run: everyKind},
		{name: "EventsAfterAnID", run: eventsAfter},
		{name: "AReaderMayStop", run: readerStops},
		{name: "UnknownExecutionsAreNotFound", run: unknownExecution},
		{name: "TheEndIsItsOutput", run: func(f *fixture) { endIs(f, ended(`{"ok":true}`)) }},
		{name: "TheEndIsItsFailure", run: func(f *fixture) { endIs(f, failedEnd()) }},
		{name: "TheEndOfALargeTurn", run: func(f *fixture) {
			endIs(f, history.Event{Kind: history.OrchestrationCompleted, Output: noise(900 << 10)})
		}},
		{name: "WhatRunsHasNoEnd", run: noEnd},
		{name: "ManyTurns", run: manyTurns},
	}}
}

func failedEnd() history.Event {
	return history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "T", Message: "m", Cause: &history.Failure{Type: "C", Message: "c"}}}
}

func everyKind(f *fixture) {
	e := f.start("a")
	var events []history.Event
	for _, kind := range history.Kinds() {
		switch {
		case kind == history.OrchestrationStarted || kind.Terminal():
			continue
		case kind == history.ActivityScheduled || kind == history.TimerCreated: // these events would be sent
			continue
		}
		event := history.Event{Kind: kind, Name: "n\u0000\uFFFF", Value: history.Payload(`{"b":1,"a":[null,1.50]}`), Reason: "r", RequestedBy: "body"}
		if kind.HasSource() {
			event.SourceEventIDs = []history.Range{{First: 1, Last: 1}}
		}
		events = append(events, event)
	}
	t := e.commit(events...)
	e.wantSegments(t)
	f.wantEqual("history", e.log()[1:], t.Events)
}

func eventsAfter(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue)) // 2 3
	e.commit(completed(3), ended(`1`))       // 4 5
	all := e.log()
	for after := range int64(7) {
		var got []history.Event
		for event, err := range f.p.ReadHistory(f.ctx(), e.instance.InstanceID, e.instance.ExecutionID, after) {
			f.must(err)
			got = append(got, event)
		}
		if want := all[min(after, 5):]; len(got) != len(want) || len(got) > 0 && got[0].ID != after+1 {
			f.t.Errorf("after %d: %d events, want %d", after, len(got), len(want))
		}
	}
}

func readerStops(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	n := 0
	for _, err := range f.p.ReadHistory(f.ctx(), e.instance.InstanceID, e.instance.ExecutionID, 0) {
		f.must(err)
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		f.t.Errorf("%d events were read", n)
	}
}

func unknownExecution(f *fixture) {
	f.start("a")
	const nobodys = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	n := 0
	for _, err := range f.p.ReadHistory(f.ctx(), "a", nobodys, 0) {
		n++
		f.wantIs(err, provider.ErrNotFound)
	}
	if n != 1 {
		f.t.Errorf("%d values, want one error", n)
	}
	_, err := f.p.ReadTerminalEvent(f.ctx(), nobodys)
	f.wantIs(err, provider.ErrNotFound)
}

func endIs(f *fixture, last history.Event) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	t := e.commit(completed(3), last)
	end, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
	f.must(err)
	f.wantEqual("final event", end, t.Events[1])
	want, _ := history.StatusAfter(last.Kind)
	f.wantStatus("a", want)
}

func noEnd(f *fixture) {
	e := f.start("a")
	for range 2 {
		_, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
		f.wantIs(err, provider.ErrNotFound)
		e.commit(turnStarted(), bulky(900<<10))
	}
}

func manyTurns(f *fixture) {
	const turns = 300
	e := f.start("a")
	for range turns {
		e.commit(turnStarted())
	}
	if log := e.log(); len(log) != turns+1 {
		f.t.Errorf("%d events, want %d", len(log), turns+1)
	}
	if o := e.read(); o.Head.Segment != turns || len(o.Segments) != turns+1 {
		f.t.Errorf("head %d of %d segments", o.Head.Segment, len(o.Segments))
	}
}
