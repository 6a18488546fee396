package history

import (
	"errors"
	"fmt"
	"testing"
)

// A history can be cut after an input event and after the decisions that it caused, unless the cut would lose work.
func TestCheckRestartPoint_eachEvent_isAcceptedUnlessWorkWouldBeLost(t *testing.T) {
	t.Parallel()
	of := func(kind Kind, source int64) Event { return Event{Kind: kind, SourceEventID: source} }
	inline := func(e Event) Event { e.Inline = true; return e }
	waits := func(e Event) Event { e.Cancel = &CancelDetails{WaitForCancellation: true}; return e }
	taking := func(n int64) Event { return Event{Kind: TurnStarted, ParkedConsumed: n} }
	parking := func(in ...Event) Event { return Event{Kind: InputsParked, Inputs: in} }
	failing := func(typ string) Event { return Event{Kind: OrchestrationFailed, Error: &Failure{Type: typ}} }
	byBody := func(e Event) Event { e.RequestedBy = RequestedByOrchestration; return e }
	started, turn, schedules := Event{Kind: OrchestrationStarted}, taking(0), Event{Kind: ActivityScheduled}
	raised := Event{Kind: ExternalEventRaised}

	for name, c := range map[string]struct {
		events []Event
		cuts   []int64
	}{
		"a chain": {
			[]Event{
				started, turn, schedules, turn, of(ActivityCompleted, 3), schedules, turn, of(ActivityCompleted, 6),
				{Kind: OrchestrationCompleted},
			},
			[]int64{1, 3, 4, 5, 6, 7, 8},
		},
		"two inputs in a turn": {
			[]Event{
				started, turn, schedules, schedules, turn, of(ActivityCompleted, 3), of(ActivityCompleted, 4),
				failing(TypeError),
			},
			[]int64{1, 4, 5, 6, 7},
		},
		"outcomes after the decisions": {
			[]Event{
				started, turn, inline(schedules), inline(schedules), inline(of(ActivityCompleted, 3)),
				inline(of(ActivityCompleted, 4)), turn,
				{Kind: OrchestrationCompleted},
			},
			[]int64{1, 4, 5, 6},
		},
		"parked inputs are taken as a whole": {
			[]Event{
				started, turn, schedules, parking(of(ActivityCompleted, 3), raised), turn, of(ActivityCompleted, 3),
				schedules, raised,
				{Kind: CustomStatusSet},
				turn, of(ActivityCompleted, 7),
			},
			[]int64{1, 3, 4, 9, 10, 11},
		},
		"a part of the parked inputs: arrived outcomes come first": {
			[]Event{
				started, turn, inline(schedules), inline(schedules), parking(raised),
				{Kind: ExecutionResumed},
				inline(of(ActivityCompleted, 3)), inline(of(ActivityCompleted, 4)),
				taking(2),
				{Kind: CustomStatusSet},
				turn, raised,
				{Kind: CustomStatusSet},
				raised, turn,
			},
			[]int64{1, 4, 5, 6, 7, 8, 10, 14, 15},
		},
		"terminated with parked inputs": {
			[]Event{
				started, turn, schedules,
				{Kind: ExecutionSuspended},
				parking(of(ActivityCompleted, 3)),
				{Kind: OrchestrationTerminated},
			},
			[]int64{1, 3, 4, 5},
		},
		"terminated in its first turn": {[]Event{started, turn, raised, {Kind: OrchestrationTerminated}}, []int64{1}},
		"ended without a turn": {
			[]Event{started, turn, schedules, turn, of(ActivityCompleted, 3), raised, failing(TypeNondeterminism)},
			[]int64{1, 3},
		},
		"payload is too large": {
			[]Event{started, turn, schedules, turn, of(ActivityCompleted, 3), raised, failing(TypePayloadTooLarge)},
			[]int64{1, 3},
		},
		"a cancel waits for the end of its call": {
			[]Event{
				started, turn, waits(schedules), turn,
				{Kind: CancelRequested},
				byBody(of(ActivityCancelRequested, 3)),
				turn, of(ActivityFailed, 3),
				{Kind: OrchestrationCancelled},
			},
			[]int64{1, 3, 4, 5, 8},
		},
		"attempts cause no decision": {
			[]Event{started, turn, schedules, turn, of(ActivityRetryScheduled, 3), {Kind: OrchestrationFailed}},
			[]int64{1, 3, 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range c.events {
				c.events[i].ID = int64(i + 1)
			}
			var cuts []int64
			for i := range c.events {
				if CheckRestartPoint(c.events, c.events[i].ID) == nil {
					cuts = append(cuts, c.events[i].ID)
				}
			}
			if fmt.Sprint(cuts) != fmt.Sprint(c.cuts) {
				t.Errorf("cut points: got %d, want %d", cuts, c.cuts)
			}
		})
	}
}

// The error names the nearest possible events on both sides.
func TestCheckRestartPoint_invalidEvent_namesNearestValidEvents(t *testing.T) {
	t.Parallel()
	events := []Event{
		{Kind: OrchestrationStarted},
		{Kind: TurnStarted},
		{Kind: ActivityScheduled},
		{Kind: TurnStarted},
		{Kind: ExternalEventRaised},
		{Kind: OrchestrationCompleted},
	}
	for i := range events {
		events[i].ID = int64(i + 1)
	}
	for at, want := range map[int64][2]int64{2: {1, 3}, 6: {5, 0}, 9: {5, 0}, 0: {0, 1}, -7: {0, 1}} {
		e, is := errors.AsType[*RestartPointError](CheckRestartPoint(events, at))
		if !is || [2]int64{e.Before, e.After} != want || e.Reason == "" || e.EventID != at {
			t.Errorf("cut after event %d: got %+v", at, e)
		}
	}
}
