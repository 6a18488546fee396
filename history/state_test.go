package history_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/history"
)

const keepAll = history.TrackTimers | history.TrackOpen | history.TrackSettled

// The state does not depend on the batches in which events are applied.
func TestState_eventsAppliedInAnyBatches_isTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := randomHistory(t)
		for _, keep := range []history.Tracking{
			0, history.TrackTimers, history.TrackOpen, history.TrackSettled, keepAll,
		} {
			whole, cut := history.NewState(keep, events...), history.NewState(keep)
			for rest := events; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
				cut.Apply(rest[:n]...)
				rest = rest[n:]
			}
			if !reflect.DeepEqual(whole, cut) {
				t.Fatalf("got %+v in batches, want %+v", cut, whole)
			}
			var nothing history.Summary
			if after := nothing.After(events...); !reflect.DeepEqual(after, whole.Summary) {
				t.Fatalf("Summary.After: got %+v, want %+v", after, whole.Summary)
			}
		}
	})
}

// The open, pending, outstanding and settled work equals the result of a search through all events of each ID.
func TestState_randomHistory_matchesSearchOfAllEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := randomHistory(t)
		state := history.NewState(keepAll, events...)
		var pending, outstanding []int64
		for o := range state.Pending() {
			if o.Kind != history.ExternalEventSubscribed {
				pending = append(pending, o.ID)
			}
		}
		for _, e := range state.CancelOutstanding("why") {
			outstanding = append(outstanding, e.Sources()...)
		}
		slices.Sort(pending)
		slices.Sort(outstanding)

		var wantPending, wantOutstanding []int64
		settled := state.SettledSet()
		for i := range events {
			found := searchEvent(events, &events[i])
			if found.scheduled && !found.ended && !state.Ended() {
				wantPending = append(wantPending, events[i].ID)
			}
			if found.scheduled && !found.ended && !found.cancelled {
				wantOutstanding = append(wantOutstanding, events[i].ID)
			}
			if found.scheduled && settled[events[i].ID] != found.settled {
				t.Fatalf("%s: settled: got %v, want %v", events[i].String(), settled[events[i].ID], found.settled)
			}
		}
		if !slices.Equal(pending, wantPending) || !slices.Equal(outstanding, wantOutstanding) {
			t.Fatalf("pending: got %v, want %v; outstanding: got %v, want %v", pending, wantPending,
				outstanding, wantOutstanding)
		}
	})
}

// found is the status of the work that an event has scheduled.
type found struct{ scheduled, ended, cancelled, settled bool }

func searchEvent(events []history.Event, scheduled *history.Event) (f found) {
	switch scheduled.Kind {
	case history.ActivityScheduled, history.TimerCreated, history.SubOrchestrationScheduled:
		f.scheduled = true
	default:
		return f
	}
	look := func(e *history.Event, parked bool) {
		if !slices.Contains(e.Settles(), scheduled.ID) {
			return
		}
		requested := e.Kind == history.ActivityCancelRequested || e.Kind == history.SubOrchestrationCancelRequested
		switch {
		case !requested:
			f.ended, f.settled = true, true
		case scheduled.WaitsForCancellation():
			f.cancelled = f.cancelled || !parked
			f.settled = f.settled || e.Kind == history.SubOrchestrationCancelRequested
		default:
			f.ended, f.settled = f.ended || !parked, true
		}
	}
	for i := range events {
		look(&events[i], false)
		for k := range events[i].Inputs {
			look(&events[i].Inputs[k], true)
		}
	}
	return f
}

// randomHistory schedules, settles, cancels and parks work, consumes parked inputs in parts, and may end.
func randomHistory(t *rapid.T) []history.Event {
	start := history.Event{ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "order", Version: "1"}
	if rapid.Bool().Draw(t, "delayed") {
		start.StartAt = &later
	}
	events := []history.Event{start}
	var open []int64
	parked := 0
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		e := randomEvent(t, open, parked)
		e.ID, e.Time = int64(len(events)+1), noon.Add(time.Duration(len(events))*time.Second)
		switch e.Kind {
		case history.ActivityScheduled, history.TimerCreated, history.SubOrchestrationScheduled:
			open = append(open, e.ID)
		case history.InputsParked:
			parked += len(e.Inputs)
		case history.TurnStarted:
			parked -= int(e.ParkedConsumed)
			if e.ParkedConsumed == 0 {
				parked = 0
			}
		default:
		}
		events = append(events, e)
		if e.Kind.Terminal() {
			break
		}
	}
	return events
}

// outcomes are the kinds that settle the work of a scheduling kind.
var outcomes = []history.Kind{
	history.ActivityCompleted, history.ActivityFailed, history.ActivityRetryScheduled, history.ActivityCancelRequested,
	history.TimerFired, history.TimerCancelled,
	history.SubOrchestrationCompleted, history.SubOrchestrationFailed, history.SubOrchestrationCancelRequested,
	history.OutputFailed,
}

// arriving are the kinds of inputs that may be parked.
var arriving = []history.Kind{
	history.ActivityCompleted, history.ActivityFailed, history.ActivityCancelRequested, history.TimerFired,
	history.SubOrchestrationCompleted, history.SubOrchestrationFailed, history.SubOrchestrationCancelFailed,
	history.OutputFailed,
}

func randomEvent(t *rapid.T, open []int64, parked int) (e history.Event) {
	kinds := []history.Kind{
		history.TurnStarted, history.ActivityScheduled, history.ActivityScheduled, history.TimerCreated,
		history.SubOrchestrationScheduled,
		history.ExternalEventSubscribed, history.ExternalEventRaised, history.CustomStatusSet, history.CancelRequested,
		history.InputsParked,
	}
	if len(open) > 0 {
		kinds = append(slices.Clone(kinds), outcomes...)
	}
	if rapid.IntRange(0, 30).Draw(t, "ends") == 0 {
		return history.Event{
			Kind: rapid.SampledFrom([]history.Kind{
				history.OrchestrationCompleted, history.OrchestrationContinuedAsNew,
			}).Draw(t, "end"),
		}
	}
	e.Kind = rapid.SampledFrom(kinds).Draw(t, "kind")
	switch e.Kind {
	case history.TurnStarted:
		e.Version = "1.2"
		if parked > 1 && rapid.Bool().Draw(t, "part") {
			e.ParkedConsumed = int64(rapid.IntRange(1, parked).Draw(t, "takes"))
		}
	case history.ActivityScheduled, history.SubOrchestrationScheduled:
		randomOptions(t, &e)
	case history.TimerCreated:
		e.FireAt = &later
	case history.ExternalEventSubscribed, history.ExternalEventRaised:
		e.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	case history.CustomStatusSet:
		e.CustomStatus = history.Payload(`"s"`)
	case history.InputsParked:
		e.BuildID, e.Error = rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "build"),
			&history.Failure{Type: history.TypeNondeterminism}
		for range rapid.IntRange(0, 3).Draw(t, "parked") {
			e.Inputs = append(e.Inputs, randomInput(t, open))
		}
	default:
		if e.Kind.HasSource() {
			randomSources(t, &e, open)
		}
	}
	return e
}

func randomOptions(t *rapid.T, e *history.Event) {
	if rapid.Bool().Draw(t, "waits") {
		e.Cancel = &history.CancelDetails{WaitForCancellation: true}
	}
	if e.Kind == history.ActivityScheduled && rapid.Bool().Draw(t, "retries") {
		e.Retry = retry
	}
	if e.Kind == history.ActivityScheduled && rapid.Bool().Draw(t, "limited") {
		e.ScheduleToCloseMs = 1000
	}
}

func randomInput(t *rapid.T, open []int64) (in history.Event) {
	if len(open) == 0 || rapid.Bool().Draw(t, "external") {
		return history.Event{Kind: history.ExternalEventRaised, Name: "a"}
	}
	in.Kind = rapid.SampledFrom(arriving).Draw(t, "input")
	randomSources(t, &in, open)
	return in
}

func randomSources(t *rapid.T, e *history.Event, open []int64) {
	ids := map[int64]bool{}
	for range rapid.IntRange(1, 3).Draw(t, "sources") {
		ids[rapid.SampledFrom(open).Draw(t, "source")] = true
	}
	if len(ids) == 1 {
		for id := range ids {
			e.SourceEventID = id
		}
		return
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		e.SourceEventIDs = history.AppendID(e.SourceEventIDs, id)
	}
}

// Apply accepts an event of every kind and release without the events to which it refers.
func TestState_eventOfEveryKind_isApplied(t *testing.T) {
	t.Parallel()
	all := samples()
	for _, s := range grown() {
		all = append(all, s)
	}
	for _, s := range all {
		state := history.NewState(keepAll, s.event)
		if state.LastID != s.event.ID || state.Last != s.event.Kind || state.Ended() != s.event.Kind.Terminal() {
			t.Errorf("%s: got %+v", s.event.String(), state.Summary)
		}
		scheduled := history.NewState(keepAll)
		for _, id := range s.event.Settles() {
			scheduled.AddOpen(history.OpenItem{ID: id})
		}
		scheduled.Apply(s.event)
		if scheduled.OpenCount() > 0 && len(s.event.Settles()) > 0 {
			t.Errorf("%s: got %d open calls, want none", s.event.String(), scheduled.OpenCount())
		}
	}
}

// The last relevant event determines the status.
func TestSummary_eachEvent_setsStatus(t *testing.T) {
	t.Parallel()
	why := &history.Failure{Type: history.TypeNondeterminism, Message: "m"}
	start, turn := history.Event{ID: 1, Kind: history.OrchestrationStarted, Version: "1"}, history.Event{
		ID: 2, Kind: history.TurnStarted, Version: "1.2",
	}
	cancel := history.Event{ID: 3, Kind: history.CancelRequested}
	blocked := history.Event{
		ID: 4, Kind: history.InputsParked, BuildID: "b1", Error: why,
		Inputs: []history.Event{{Kind: history.TimerFired, SourceEventID: 9}},
	}
	again := history.Event{ID: 5, Kind: history.InputsParked, BuildID: "b1", Error: why}
	other := history.Event{ID: 5, Kind: history.InputsParked, BuildID: "b2", Error: why}
	steps := []struct {
		event  history.Event
		status history.RuntimeStatus
		shows  bool
		parked int
	}{
		{start, history.StatusPending, false, 0},
		{turn, history.StatusRunning, true, 0},
		{
			history.Event{ID: 3, Kind: history.CustomStatusSet, CustomStatus: history.Payload(`1`)},
			history.StatusRunning, true, 0,
		},
		{history.Event{ID: 3, Kind: history.TurnStarted, Version: "1.3"}, history.StatusRunning, false, 0},
		{cancel, history.StatusCancelling, true, 0},
		{blocked, history.StatusBlocked, true, 1},
		{again, history.StatusBlocked, false, 1},
		{other, history.StatusBlocked, true, 1},
		{turn, history.StatusCancelling, true, 0},
		{history.Event{ID: 6, Kind: history.OrchestrationCancelled}, history.StatusCancelled, true, 0},
	}
	var s history.Summary
	for i := range steps {
		step := &steps[i]
		before := s
		s = s.After(step.event)
		if s.Status() != step.status || s.Parked != step.parked || s.StatusChanged(&before) != step.shows {
			t.Errorf("after %s: got %s, %d parked, changed %v; want %s, %d, %v", step.event.String(), s.Status(),
				s.Parked, s.StatusChanged(&before), step.status, step.parked, step.shows)
		}
	}
	if s.Version != "1.2" {
		t.Errorf("got version %q, want 1.2", s.Version)
	}
}

// After a turn that consumes a part of the parked inputs, another turn is due.
func TestState_partOfParkedInputsConsumed_needsAnotherTurn(t *testing.T) {
	t.Parallel()
	state := history.NewState(history.TrackOpen,
		history.Event{ID: 1, Kind: history.OrchestrationStarted},
		history.Event{ID: 2, Kind: history.TurnStarted},
		history.Event{ID: 3, Kind: history.ExternalEventSubscribed, Name: "a"},
		history.Event{ID: 4, Kind: history.ExternalEventSubscribed, Name: "a"},
		history.Event{ID: 5, Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{
			{Kind: history.ExternalEventRaised, Name: "b"}, {Kind: history.ExternalEventRaised, Name: "a"},
		}},
	)
	pending := func() (ids []int64) {
		for o := range state.Pending() {
			ids = append(ids, o.ID)
		}
		return ids
	}
	if got := pending(); !slices.Equal(got, []int64{4}) || state.Parked != 2 || state.PartialInputs {
		t.Errorf("got pending %v, %+v", got, state.Summary)
	}
	state.Apply(history.Event{ID: 6, Kind: history.TurnStarted, ParkedConsumed: 1}, history.Event{
		ID: 7, Kind: history.ExternalEventRaised, Name: "b",
	})
	if got := pending(); !slices.Equal(got, []int64{4}) || state.Parked != 1 || !state.PartialInputs ||
		state.Blocked.Active {
		t.Errorf("after a part: got pending %v, %+v", got, state.Summary)
	}
	state.Apply(history.Event{ID: 8, Kind: history.TurnStarted, ParkedConsumed: 1}, history.Event{
		ID: 9, Kind: history.ExternalEventRaised, Name: "a",
	})
	if got := pending(); !slices.Equal(got, []int64{4}) || state.Parked != 0 || state.PartialInputs {
		t.Errorf("after the last part: got pending %v, %+v", got, state.Summary)
	}
}
