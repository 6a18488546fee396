package perdure_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func TestRaiseEvent_delivered_completesFuture(t *testing.T) {
	t.Parallel()
	mentions := func(ctx *perdure.OrchestrationContext, _ int) (bool, error) {
		f := perdure.RaiseEvent(ctx, "other", "approved", parcel{"a", 1})
		_, err := f.Await(ctx)
		return f.IsDone() && f.InstanceID() == "", err
	}
	w := orchestrate(t, mentions)
	want := history.Event{
		ID: 3, Kind: history.ExternalEventSent, Time: epoch, Name: "approved", InstanceID: "other",
		Data: history.Payload(`{"Instance":"a","Weight":1}`),
	}
	if !reflect.DeepEqual(w.history[2], want) {
		t.Errorf("got %+v", w.history[2])
	}
	w.turn(history.Event{Kind: history.ExternalEventDelivered, SourceEventID: 3})
	if got := w.replayed().output(); got != "true" {
		t.Error(got)
	}
}

func TestRaiseEvent_notDelivered_returnsReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply              history.Event
		notFound, hasEnded bool
	}{
		"absent": {
			history.Event{Kind: history.ExternalEventUndelivered, Error: failedWith(history.TypeNotFound)}, true, false,
		},
		"over": {
			history.Event{Kind: history.ExternalEventUndelivered, Error: failedWith(history.TypeEnded)}, false, true,
		},
		"refused": {
			history.Event{Kind: history.OutputFailed, Error: failedWith(history.TypePayloadTooLarge)}, false, false,
		},
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			_, err := perdure.RaiseEvent(ctx, "other", "approved", 7).Await(ctx)
			var e *perdure.RaiseEventError
			if !errors.As(err, &e) || e.Event != "approved" || e.InstanceID != "other" ||
				e.Type != tt.reply.Error.Type || e.Message != tt.reply.Error.Message {
				t.Errorf("%s: got error %#v", name, err)
			}
			if errors.Is(err, perdure.ErrInstanceNotFound) != tt.notFound ||
				errors.Is(err, perdure.ErrInstanceEnded) != tt.hasEnded {
				t.Errorf("%s: got error %v", name, err)
			}
			return 0, err
		})
		tt.reply.SourceEventID = 3
		w.turn(tt.reply)
		if f := w.replayed().failure(); f.Type != "RaiseEventError" ||
			!strings.HasPrefix(f.Message, `external event "approved" for instance "other" was not delivered: `) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// A sent event cannot be recalled, so its cancellation is not recorded.
func TestRaiseEvent_cancelled_isStillDelivered(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, leave := perdure.WithCancel(ctx)
		alone, inScope := perdure.RaiseEvent(ctx, "other", "a", 1), perdure.RaiseEvent(scope, "other", "b", 2)
		alone.Cancel("no matter")
		leave()
		for f, want := range map[*perdure.Future[struct{}]]perdure.CancelReason{
			alone: perdure.ReasonRequested, inScope: perdure.ReasonScopeEnded,
		} {
			_, err := f.Await(ctx)
			var cancelled *perdure.CancelledError
			if !errors.As(err, &cancelled) || cancelled.Reason != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		_, late := perdure.RaiseEvent(scope, "other", "c", 3).Await(ctx)
		if late == nil {
			t.Error("RaiseEvent in an ended scope: got no error")
		}
		perdure.RaiseEvent(ctx, "other", "d", 4)
		return 1, perdure.Sleep(ctx, time.Hour)
	})
	// The delivery is recorded, like every outcome of a cancelled call.
	responses := []history.Event{
		{Kind: history.ExternalEventDelivered, SourceEventID: 3},
		{Kind: history.ExternalEventDelivered, SourceEventID: 4},
	}
	w.turn(responses...).run()
	if got := kinds(w.replayed().history[2:]); got != strings.Repeat("ExternalEventSent ", 3)+
		"TimerCreated TurnStarted "+strings.Repeat("ExternalEventDelivered ", 2)+
		"TurnStarted TimerFired OrchestrationCompleted" {
		t.Error(got)
	}
}

func TestRaiseEvent_otherTargetOrDataOnReplay_isNondeterminism(t *testing.T) {
	t.Parallel()
	to, data := "other", 1
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_, err := perdure.RaiseEvent(ctx, to, "approved", data).Await(ctx)
		return 0, err
	})
	for name, change := range map[string]func(){
		"another instance": func() { to = "another" },
		"other data":       func() { data = 2 },
	} {
		to, data = "other", 1
		change()
		var differs *replay.NondeterminismError
		if err := w.open().Replay(w.history); !errors.As(err, &differs) || differs.EventID != 3 {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestRaiseEvent_invalidArgument_returnsError(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		to, name string
		data     any
	}{
		`perdure: RaiseEvent "n": instance ID is empty`: {"", "n", 1},
		`perdure: RaiseEvent "n": instance ID has 1025 bytes; use 1 to 1024 bytes`: {
			strings.Repeat("i", 1025), "n", 1,
		},
		`name has 257 bytes; use 1 to 256 bytes of UTF-8 without control characters`: {
			"i", strings.Repeat("n", 257), 1,
		},
		`name has 2 bytes; use 1 to 256 bytes of UTF-8 without control characters`: {"i", "n\n", 1},
		`perdure: encode data of external event "n"`:                               {"i", "n", math.NaN()},
		`payload too large: 204801 bytes, limit 204800: data of external event "n"`: {
			"i", "n", strings.Repeat("x", perdure.MaxPayloadBytes-1),
		},
	} {
		got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.RaiseEvent(ctx, tt.to, tt.name, tt.data).Await(ctx)
			return err
		})
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFutureInstanceID_subOrchestration_returnsIDOfChild(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) ([]string, error) {
		named := perdure.CallSubOrchestration(ctx, pack, 7, perdure.WithInstanceID("mine"))
		derived := perdure.CallSubOrchestration(ctx, pack, 7)
		none := perdure.CallSubOrchestration(ctx, pack, 7, perdure.WithInstanceID(""))
		activity := perdure.CallActivity(ctx, inc, 1)
		ids := []string{named.InstanceID(), derived.InstanceID(), none.InstanceID(), activity.InstanceID()}
		return ids, perdure.WhenAll(ctx, named, derived)
	})
	if got := w.run().replayed().output(); got != `["mine","order-17:01JEXECUTION:4","",""]` {
		t.Error(got)
	}
}

func TestWithDelay_subOrchestration_recordsStartTime(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_, err := perdure.StartOrchestration(ctx, "pack", 7, perdure.WithDelay(time.Hour))
		perdure.CallSubOrchestration(ctx, pack, 7, perdure.WithDelay(24*time.Hour), perdure.WithInstanceID("mine"))
		perdure.CallSubOrchestration(ctx, pack, 7, perdure.WithDelay(0))
		return 0, errors.Join(err, perdure.Sleep(ctx, time.Second))
	})
	for i, want := range []time.Duration{time.Hour, 24 * time.Hour, 0} {
		switch at := w.history[2+i].StartAt; {
		case want == 0 && at != nil:
			t.Errorf("start %d: got time %v, want none", i, at)
		case want > 0 && (at == nil || !at.Equal(epoch.Add(want))):
			t.Errorf("start %d: got time %v, want a delay of %v", i, at, want)
		}
	}
	w.replayed()

	for _, d := range []time.Duration{-1, 3654 * 24 * time.Hour} {
		got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallSubOrchestration(ctx, pack, 7, perdure.WithDelay(d)).Await(ctx)
			return err
		})
		if !strings.HasPrefix(got, `perdure: WithDelay: orchestration "pack": `) ||
			!strings.Contains(got, "is out of range; use 0 to ") {
			t.Error(got)
		}
	}
}

// A later version of the code may use another delay.
func TestWithDelay_changedCode_isNotComparedOnReplay(t *testing.T) {
	t.Parallel()
	delay := time.Hour
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_, err := perdure.StartOrchestration(ctx, "pack", 7, perdure.WithDelay(delay))
		return 0, errors.Join(err, perdure.Sleep(ctx, time.Second))
	})
	delay = time.Minute
	w.replayed()
}
