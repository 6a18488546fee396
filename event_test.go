package perdure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func raise(name, id, data string) history.Event {
	return history.Event{Kind: history.ExternalEventRaised, Name: name, EventID: id, Data: history.Payload(data)}
}

// take waits for n events with the same name.
func take(ctx *perdure.OrchestrationContext, name string, n int) (string, error) {
	var got []string
	for range n {
		s, err := perdure.WaitForExternalEvent[string](ctx, name).Await(ctx)
		if err != nil {
			return "", err
		}
		got = append(got, s)
	}
	return strings.Join(got, " "), nil
}

func TestWaitForExternalEvent_eventsBeforeAndDuringWait_arriveInOrder(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		return take(ctx, "e", 4)
	})
	w.turn(raise("e", "1", `"a"`), raise("other", "", `"x"`), raise("e", "2", `"b"`)).run()
	w.turn(raise("e", "3", `"c"`))
	w.turn(raise("e", "4", `"d"`))
	if got := w.replayed().output(); got != `"a b c d"` {
		t.Error(got)
	}
}

func TestWaitForExternalEvent_duplicateEventID_isIgnored(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) { return take(ctx, "e", 3) })
	w.turn(raise("e", "1", `"a"`), raise("e", "1", `"again"`), raise("f", "1", `"again"`))
	w.turn(raise("e", "", `"b"`))
	before := len(w.history)
	if w.turn(raise("e", "1", `"again"`)); len(w.history) != before {
		t.Errorf("duplicate event: got events %v, want none", w.history[before:])
	}
	w.turn(raise("e", "", `"c"`))
	if got := w.replayed().output(); got != `"a b c"` {
		t.Error(got)
	}
}

func TestWaitForExternalEvent_severalWaits_receiveInOrderOfCreation(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		first, second := perdure.WaitForExternalEvent[string](ctx, "e"), perdure.WaitForExternalEvent[string](ctx, "e")
		b, err := second.Await(ctx)
		a, early := first.Await(ctx)
		return a + b, errors.Join(err, early)
	})
	if got := w.turn(raise("e", "", `"a"`), raise("e", "", `"b"`)).replayed().output(); got != `"ab"` {
		t.Error(got)
	}
}

// The wait receives its event while the code waits for something else, and is then cancelled.
func TestWaitForExternalEvent_lostAfterReceipt_returnsEventToHeadOfQueue(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(
		*perdure.OrchestrationContext, *perdure.Future[time.Time], ...perdure.Awaitable,
	) error{
		"Select": func(
			ctx *perdure.OrchestrationContext, timer *perdure.Future[time.Time], events ...perdure.Awaitable,
		) error {
			i, err := perdure.Select(ctx, append([]perdure.Awaitable{timer}, events...)...)
			if i != 0 {
				return fmt.Errorf("winner %d", i)
			}
			return err
		},
		"Cancel": func(
			_ *perdure.OrchestrationContext, _ *perdure.Future[time.Time], events ...perdure.Awaitable,
		) error {
			for _, e := range events {
				e.Cancel("")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				timer, first, second := perdure.CreateTimer(ctx, time.Second),
					perdure.WaitForExternalEvent[string](ctx, "e"), perdure.WaitForExternalEvent[string](ctx, "e")
				if err := perdure.Sleep(ctx, time.Minute); err != nil {
					return "", err
				}
				if !first.IsDone() || !second.IsDone() {
					return "", errors.New("the events are not there")
				}
				if err := lose(ctx, timer, first, second); err != nil {
					return "", err
				}
				if _, err := first.Await(ctx); !errors.As(err, new(*perdure.CancelledError)) {
					return "", fmt.Errorf("the loser's error: %w", err)
				}
				return take(ctx, "e", 3)
			})
			w.turn(raise("e", "1", `"a"`), raise("e", "2", `"b"`), raise("e", "3", `"c"`))
			if got := w.run().replayed().output(); got != `"a b c"` {
				t.Error(got)
			}
		})
	}
}

func TestWaitForExternalEvent_cancelledAfterReceipt_nextWaitReceivesEvent(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		first, second := perdure.WaitForExternalEvent[string](ctx, "e"), perdure.WaitForExternalEvent[string](ctx, "e")
		if err := perdure.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
		first.Cancel("")
		return second.Await(ctx)
	})
	if got := w.turn(raise("e", "1", `"a"`)).run().replayed().output(); got != `"a"` {
		t.Error(got)
	}
}

func TestWaitForExternalEvent_cancelledBeforeEvent_receivesNothing(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		for range 2 {
			if _, err := perdure.Select(ctx, perdure.WaitForExternalEvent[string](ctx, "e"),
				perdure.CreateTimer(ctx, time.Second)); err != nil {
				return "", err
			}
		}
		return take(ctx, "e", 1)
	})
	if got := w.run().turn(raise("e", "1", `"a"`)).replayed().output(); got != `"a"` {
		t.Error(got)
	}
}

func TestWaitForExternalEvent_observedThenCancelled_keepsEvent(t *testing.T) {
	t.Parallel()
	for name, observe := range map[string]func(*perdure.OrchestrationContext, *perdure.Future[string]) error{
		"Await": func(ctx *perdure.OrchestrationContext, f *perdure.Future[string]) error {
			_, err := f.Await(ctx)
			return err
		},
		"Select": func(ctx *perdure.OrchestrationContext, f *perdure.Future[string]) error {
			_, err := perdure.Select(ctx, f)
			return err
		},
		"WhenAny": func(ctx *perdure.OrchestrationContext, f *perdure.Future[string]) error {
			_, err := perdure.WhenAny(ctx, f)
			return err
		},
		"WhenAll": func(ctx *perdure.OrchestrationContext, f *perdure.Future[string]) error {
			return perdure.WhenAll(ctx, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				f := perdure.WaitForExternalEvent[string](ctx, "e")
				if err := observe(ctx, f); err != nil {
					return "", err
				}
				f.Cancel("too late")
				a, err := f.Await(ctx)
				b, next := take(ctx, "e", 1)
				return a + b, errors.Join(err, next)
			})
			if got := w.turn(raise("e", "1", `"a"`), raise("e", "2", `"b"`)).replayed().output(); got != `"ab"` {
				t.Error(got)
			}
		})
	}
}

func TestWaitForExternalEvent_dataDoesNotDecode_returnsErrorAndConsumesEvent(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
		if err == nil || !strings.Contains(err.Error(), `decode data of external event "e"`) {
			return "", err
		}
		return take(ctx, "e", 1)
	})
	if got := w.turn(raise("e", "1", `"a"`), raise("e", "2", `"b"`)).replayed().output(); got != `"b"` {
		t.Error(got)
	}
}

func TestTerminate_runningOrchestration_endsWithoutRunningCode(t *testing.T) {
	t.Parallel()
	went := false
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		defer func() { went = went || !ctx.IsReplaying() }()
		_, err := perdure.CallActivityByName[int](ctx, "missing", 1).Await(ctx)
		return 1, err
	})
	w.turn(history.Event{Kind: history.OrchestrationTerminated, Message: "enough"}, history.Event{
		Kind: history.ActivityCompleted, SourceEventID: 3,
	})
	if got := w.replayed().end(); got.Kind != history.OrchestrationTerminated || got.Message != "enough" ||
		got.ID != 6 || !w.instance.Ended() {
		t.Errorf("got %+v", got)
	}
	if w.instance.Close(); went {
		t.Error("the code continued after the instance was closed")
	}
}

func ExampleWaitForExternalEvent() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "expense", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		approved, late := perdure.WaitForExternalEvent[string](ctx, "approved"), perdure.CreateTimer(ctx, 72*time.Hour)
		if i, err := perdure.Select(ctx, approved, late); i != 0 {
			return "expired", err
		}
		by, err := approved.Await(ctx)
		return "approved by " + by, err
	})
	fmt.Println(example(r, "expense", 100)) // no event is raised
	// Output: "expired"
}
