package turns

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Histories tests that histories are read unchanged.
func Histories() kit.Group {
	return kit.Group{Name: "history", Cases: []kit.Case{
		{Name: "EveryKindOfEventRoundTrips", Run: everyKind},
		{Name: "EventsAfterAnID", Run: eventsAfter},
		{Name: "ReaderMayStopEarly", Run: readerStops},
		{Name: "UnknownExecutionsAreNotFound", Run: unknownExecution},
		{Name: "EndIsAnOutput", Run: func(f *kit.Fixture) { endIs(f, kit.Ended(`{"ok":true}`)) }},
		{Name: "EndIsAFailure", Run: func(f *kit.Fixture) { endIs(f, kit.FailedEnd()) }},
		{Name: "EndOfLargeTurn", Run: func(f *kit.Fixture) {
			endIs(f, history.Event{Kind: history.OrchestrationCompleted, Output: kit.Noise(900 << 10)})
		}},
		{Name: "RunningExecutionHasNoEnd", Run: noEnd},
		{Name: "ManyTurns", Run: manyTurns},
	}}
}

func everyKind(f *kit.Fixture) {
	e := f.Start("a")
	var events []history.Event
	for _, kind := range history.Kinds() {
		switch {
		case kind == history.OrchestrationStarted || kind.Terminal():
			continue
		case kind == history.ActivityScheduled || kind == history.TimerCreated: // these events would be sent
			continue
		}
		event := history.Event{
			Kind: kind, Name: "n\u0000\uFFFF", Value: history.Payload(`{"b":1,"a":[null,1.50]}`), Reason: "r",
			RequestedBy: "body",
		}
		if kind.HasSource() {
			event.SourceEventIDs = []history.Range{{First: 1, Last: 1}}
		}
		events = append(events, event)
	}
	t := e.Commit(events...)
	e.WantSegments(t)
	f.WantEqual("history", e.History()[1:], t.Events)
}

func eventsAfter(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue)) // 2 3
	e.Commit(kit.Completed(3), kit.Ended(`1`))           // 4 5
	all := e.History()
	for after := range int64(7) {
		var got []history.Event
		for event, err := range f.Provider.ReadHistory(f.Ctx(), e.Instance.InstanceID, e.Instance.ExecutionID, after) {
			f.Must(err)
			got = append(got, event)
		}
		if want := all[min(after, 5):]; len(got) != len(want) || len(got) > 0 && got[0].ID != after+1 {
			f.T.Errorf("after %d: %d events, want %d", after, len(got), len(want))
		}
	}
}

func readerStops(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	n := 0
	for _, err := range f.Provider.ReadHistory(f.Ctx(), e.Instance.InstanceID, e.Instance.ExecutionID, 0) {
		f.Must(err)
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		f.T.Errorf("%d events were read", n)
	}
}

func unknownExecution(f *kit.Fixture) {
	f.Start("a")
	const unknownExecution = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	n := 0
	for _, err := range f.Provider.ReadHistory(f.Ctx(), "a", unknownExecution, 0) {
		n++
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	if n != 1 {
		f.T.Errorf("got %d values, want one error", n)
	}
	_, err := f.Provider.ReadTerminalEvent(f.Ctx(), unknownExecution)
	f.WantErrorIs(err, provider.ErrNotFound)
}

func endIs(f *kit.Fixture, last history.Event) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	t := e.Commit(kit.Completed(3), last)
	end, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
	f.Must(err)
	f.WantEqual("final event", end, t.Events[1])
	want, _ := history.StatusAfter(last.Kind)
	f.WantStatus("a", want)
}

func noEnd(f *kit.Fixture) {
	e := f.Start("a")
	for range 2 {
		_, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
		f.WantErrorIs(err, provider.ErrNotFound)
		e.Commit(kit.TurnStarted(), kit.Bulky(900<<10))
	}
}

func manyTurns(f *kit.Fixture) {
	const turns = 300
	e := f.Start("a")
	for range turns {
		e.Commit(kit.TurnStarted())
	}
	if log := e.History(); len(log) != turns+1 {
		f.T.Errorf("got %d events, want %d", len(log), turns+1)
	}
	if o := e.Read(); o.Head.Segment != turns || len(o.Segments) != turns+1 {
		f.T.Errorf("head %d of %d segments", o.Head.Segment, len(o.Segments))
	}
}
