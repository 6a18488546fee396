package blocked

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// hub counts dead letters.
type hub struct {
	provider.Provider

	deadLetters int
}

func (h *hub) DeadLetter(context.Context, string, provider.Unreadable) error {
	h.deadLetters++
	return nil
}

// The reason, the messages and their deliveries decide whether a turn without code is left to another build, parked, or
// ends the instance.
func TestDecide_reasonAndDeliveries_decideTheAction(t *testing.T) {
	t.Parallel()
	event, terminate := provider.MessageEventRaised, provider.MessageTerminate
	unregistered, poisoned := &execution.UnregisteredError{Name: "o"}, &poison.Error{InstanceID: "i-1", CrashCount: 11}
	for name, c := range map[string]struct {
		err         error
		kind        provider.MessageKind
		deliveries  int
		want        Action
		ends        history.Kind // of the last event, if it commits
		deadLetters int
	}{
		"first delivery":           {unregistered, event, 1, Fail, "", 0},
		"second delivery":          {unregistered, event, 2, Fail, "", 0},
		"third delivery":           {unregistered, event, 3, Commit, history.InputsParked, 0},
		"paused":                   {execution.ErrPaused, event, 1, Commit, history.InputsParked, 0},
		"paused, without an input": {execution.ErrPaused, provider.MessageWake, 1, Drop, "", 0},
		"poison":                   {poisoned, event, 1, Commit, history.InputsParked, 1},
		"termination, at any time": {unregistered, terminate, 1, Commit, history.OrchestrationTerminated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{}
			base := intake.NewBase(h, func() time.Time { return time.Unix(9, 0) }, slog.New(slog.DiscardHandler))
			read := &provider.Orchestration{Verified: true, Segments: []provider.Segment{{Events: []history.Event{
				{ID: 1, Kind: history.OrchestrationStarted, Time: time.Unix(1, 0)},
			}}}}
			state := read.State(history.TrackTimers)
			if c.err == execution.ErrPaused { //nolint:errorlint // the test's own value
				state.Apply(history.Event{ID: 2, Kind: history.ExecutionSuspended})
			}
			x, err := (&execution.Loader{Base: base, Registry: registry.New()}).Load(t.Context(), read, state, c.err)
			if err != nil {
				t.Fatal(err)
			}
			taken := []provider.InboxMessage{{
				Message: provider.Message{Kind: c.kind}, Record: provider.Record{ReceiveCount: c.deliveries},
			}}
			q := messages.NewQueue(taken)
			check := poison.NewCheck(&poison.Options{Base: base}, "i-1", true)
			p := &Policy{Base: base, BuildID: "b1"}
			got, err := p.Decide(t.Context(), &Turn{
				InstanceID: "i-1", Execution: x, Queue: &q, Taken: taken, Attempts: &attempts.Ledger{}, Poison: &check,
				Err: c.err,
			})
			if err != nil || got.Action != c.want || h.deadLetters != c.deadLetters {
				t.Fatalf("got action %v, %v, and %d dead letters", got.Action, err, h.deadLetters)
			}
			if c.want == Commit && (got.Events[len(got.Events)-1].Kind != c.ends || got.Consumed != 1) {
				t.Errorf("commits %v, which consume %d messages", got.Events, got.Consumed)
			}
		})
	}
}

// Refused outputs are parked while the instance is paused: after a pause request, or before a resume request.
func TestPauseEvents_refusedOutputs_areParkedWhilePaused(t *testing.T) {
	t.Parallel()
	refused := []provider.OutputFailure{{EventID: 2}}
	for kind, parked := range map[history.Kind]int{history.ExecutionSuspended: 1, history.ExecutionResumed: 0} {
		events := PauseEvents(history.Event{Kind: kind}, refused, time.Unix(9, 0))
		if len(events) != 2 || events[parked].Kind != history.InputsParked || events[1-parked].Kind != kind {
			t.Errorf("%s: got %v", kind, events)
		}
	}
}
