package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestAwaitAll_anyOrderOfCompletion_returnsValuesInOrder(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		var fs []*perdure.Future[int]
		for i := range 3 {
			fs = append(fs, perdure.CallActivity(ctx, inc, i))
		}
		again, err := perdure.AwaitAll(ctx, fs[:2])
		if err != nil {
			return nil, err
		}
		all, err := perdure.AwaitAll(ctx, fs) // two of them are done
		return append(all, again...), err
	})
	for i := range 3 { // the last activity completes first
		w.turn(history.Event{
			Kind: history.ActivityCompleted, SourceEventID: int64(5 - i), Result: history.Payload(fmt.Sprint(3 - i)),
		})
	}
	if got := w.replayed().output(); got != "[1,2,3,1,2]" {
		t.Error(got)
	}
}

func TestAwaitAll_severalFailures_joinsErrors(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		bad := func(message string) *perdure.Future[int] {
			return perdure.Async(ctx, func(*perdure.OrchestrationContext) (int, error) {
				return 1, errors.New(message)
			})
		}
		values, err := perdure.AwaitAll(ctx, []*perdure.Future[int]{
			bad("one"), perdure.CallActivity(ctx, inc, 1), bad("two"),
		})
		none, noErr := perdure.AwaitAll[int](ctx, nil)
		return fmt.Sprint(values, " ", strings.ReplaceAll(err.Error(), "\n", " and "), " ", none, noErr), nil
	})
	if got := w.run().replayed().output(); got != `"[] one and two [] \u003cnil\u003e"` {
		t.Error(got)
	}
}

func TestFirstSuccess_oneFails_returnsFirstValueAndCancelsOthers(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		fs := []*perdure.Future[int]{
			perdure.CallActivity(ctx, inc, 1), perdure.CallActivity(ctx, inc, 2), perdure.CallActivity(ctx, inc, 3),
		}
		n, err := perdure.FirstSuccess(ctx, fs)
		if err != nil {
			return "", err
		}
		_, lost := fs[0].Await(ctx)
		_, failed := fs[1].Await(ctx)
		return fmt.Sprint(n, ": ", lost, ", ", failed), nil
	})
	w.turn(history.Event{
		Kind: history.ActivityFailed, SourceEventID: 4, Error: &history.Failure{Type: "full", Message: "full"},
	})
	w.turn(history.Event{Kind: history.ActivityCompleted, SourceEventID: 5, Result: history.Payload("4")})
	got := w.replayed().output()
	if !strings.HasPrefix(got, `"4: cancelled (select_loser), `) || !strings.Contains(got, "full") {
		t.Error(got)
	}
}

func TestFirstSuccess_allFail_joinsErrors(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		bad := func(message string, after time.Duration) *perdure.Future[int] {
			return perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
				return 0, errors.Join(perdure.Sleep(ctx, after), errors.New(message))
			})
		}
		one, two := bad("one", 2*time.Second), bad("two", time.Second)
		_, err := perdure.FirstSuccess(ctx, []*perdure.Future[int]{one, two, one})
		_, none := perdure.FirstSuccess[int](ctx, nil)
		return fmt.Sprint(strings.ReplaceAll(err.Error(), "\n", " and "), "; ", none), nil
	})
	if got := w.run().replayed().output(); got != `"one and two and one; perdure: no futures to wait for"` {
		t.Error(got)
	}
}

func TestFirstSuccess_scopeTimesOut_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		late, cancel := perdure.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := perdure.FirstSuccess(late, []*perdure.Future[int]{perdure.WaitForExternalEvent[int](ctx, "never")})
		return fmt.Sprint(errors.Is(err, context.DeadlineExceeded)), nil
	})
	if got := w.run().replayed().output(); got != `"true"` {
		t.Error(got)
	}
}

// If a future that did not win has received an event, the next wait receives that event.
func TestFirstSuccess_eventOfLoser_isReceivedByNextWait(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		first, err := perdure.FirstSuccess(ctx, []*perdure.Future[string]{
			perdure.WaitForExternalEvent[string](ctx, "a"), perdure.WaitForExternalEvent[string](ctx, "b"),
		})
		if err != nil {
			return "", err
		}
		if err := perdure.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
		next, err := perdure.WaitForExternalEvent[string](ctx, "b").Await(ctx)
		return first + next, err
	})
	w.turn(raise("a", "1", `"one"`), raise("b", "2", `"two"`))
	if got := w.run().replayed().output(); got != `"onetwo"` {
		t.Error(got)
	}
}

func TestAwaitAll_resultDoesNotDecode_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		fs := []*perdure.Future[int]{
			perdure.CallActivityByName[int](ctx, "far", 1), perdure.CallActivityByName[int](ctx, "far", 2),
		}
		values, err := perdure.AwaitAll(ctx, fs)
		_, awaited := fs[1].Await(ctx)
		return fmt.Sprint(values, " ", err != nil, " ", awaited != nil), nil
	})
	w.turn(outcome(3, "7"), outcome(4, `"seven"`))
	if got := w.replayed().output(); got != `"[] true true"` {
		t.Errorf("%s: got a value for a result that does not decode", got)
	}
}

func TestAwaitAll_eventDoesNotDecode_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		values, err := perdure.AwaitAll(ctx, []*perdure.Future[int]{perdure.WaitForExternalEvent[int](ctx, "amount")})
		return fmt.Sprint(values, " ", err != nil), nil
	})
	w.turn(raise("amount", "1", `"much"`))
	if got := w.replayed().output(); got != `"[] true"` {
		t.Error(got)
	}
}

// FirstSuccess has returned the error of the event to the code, so no later wait receives the event.
func TestFirstSuccess_eventDoesNotDecode_isNotCarriedToNextExecution(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 2 {
			late, cancel := perdure.WithTimeout(ctx, time.Second)
			defer cancel()
			again, err := perdure.WaitForExternalEvent[string](late, "amount").Await(late)
			return fmt.Sprint(again, " ", err), nil
		}
		_, err := perdure.FirstSuccess(ctx, []*perdure.Future[int]{perdure.WaitForExternalEvent[int](ctx, "amount")})
		if err == nil {
			return "", errors.New("no error")
		}
		return perdure.ContinueAsNew[string](ctx, 2)
	})
	w.turn(raise("amount", "1", `"much"`))
	got := w.run().output()
	if got != `" cancelled (timeout)"` {
		t.Errorf("%s: a later wait received the event whose error First returned", got)
	}
}

// The end of the scope does not return an event whose error the code has seen.
func TestFirstSuccess_eventDoesNotDecode_isConsumedWhenScopeEnds(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		for range 3 {
			err := func() error {
				in, cancel := perdure.WithCancel(ctx)
				defer cancel()
				_, err := perdure.FirstSuccess(in,
					[]*perdure.Future[int]{perdure.WaitForExternalEvent[int](in, "amount")})
				return err
			}()
			if err == nil {
				return "good", nil
			}
		}
		return "three errors of one event", nil
	})
	w.turn(raise("amount", "1", `"much"`), raise("amount", "2", "7"))
	if got := w.replayed().output(); got != `"good"` {
		t.Error(got)
	}
}

// FirstSuccess skips an event that does not decode. The event stays with its future.
func TestFirstSuccess_skippedEventDoesNotDecode_isConsumed(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		bad, good := perdure.WaitForExternalEvent[int](ctx, "a"), perdure.WaitForExternalEvent[int](ctx, "b")
		n, err := perdure.FirstSuccess(ctx, []*perdure.Future[int]{bad, good})
		if err != nil {
			return "", err
		}
		_, lost := bad.Await(ctx)
		again, err := perdure.WaitForExternalEvent[string](ctx, "a").Await(ctx)
		return fmt.Sprint(n, ", ", lost, ", ", again), err
	})
	w.turn(raise("a", "1", `"one"`), raise("b", "2", "2"))
	w.turn(raise("a", "3", `"three"`))
	if got := w.replayed().output(); !strings.HasSuffix(got, `, three"`) || !strings.Contains(got, "perdure: decode ") {
		t.Errorf("%s: the next future also received the event", got)
	}
}

// FirstSuccess cancels all other futures within the time of a turn, like the end of a scope.
func TestFirstSuccess_hundredThousandWaits_cancelsThemWithinTurnLimit(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		fs := []*perdure.Future[int]{perdure.CallActivityByName[int](ctx, "far", 1)}
		for range 100_000 {
			fs = append(fs, perdure.WaitForExternalEvent[int](ctx, "vote"))
		}
		return perdure.FirstSuccess(ctx, fs)
	})
	w := newWorld(t, r)
	w.options.TurnTimeout = 30 * time.Second // a search for each wait would take minutes
	w.start("o", 1)
	if err := w.tryTurn(outcome(3, "1")); err != nil {
		t.Errorf("got error %.200s", err)
	}
}
