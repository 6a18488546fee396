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

// forever waits until it is cancelled.
func forever(ctx *perdure.OrchestrationContext) error {
	_, err := perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	return err
}

// lines returns the events from the given one on, with the IDs of their tasks.
func (w *world) lines(from int) string {
	w.t.Helper()
	var b strings.Builder
	for i := range w.history[from-1:] {
		ev := &w.history[from-1+i]
		fmt.Fprint(&b, ev.String())
		if len(ev.SourceEventIDs) > 0 {
			fmt.Fprint(&b, " ", ev.SourceEventIDs)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (w *world) wantLines(from int, want ...string) {
	w.t.Helper()
	if got := w.lines(from); got != strings.Join(want, "\n")+"\n" {
		w.t.Errorf("got events\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

func outcome(id int64, result string) history.Event {
	return history.Event{
		Kind: history.ActivityCompleted, SourceEventID: id, Result: history.Payload(result), Attempt: 1,
	}
}

func TestOrchestrationContext_cancelled_allCallsReturnItsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		before, settled := perdure.CallActivity(ctx, inc, 1), perdure.CreateTimer(ctx, 0)
		err := perdure.Sleep(ctx, time.Hour)
		var all []error
		wait := func(err error) { all = append(all, err) }
		future := func(_ any, err error) { all = append(all, err) }
		future(before.Await(ctx))
		future(settled.Await(ctx))
		future(perdure.CallActivity(ctx, inc, 1).Await(ctx))
		future(perdure.CallActivityByName[int](ctx, "inc", 1).Await(perdure.WithoutCancel(ctx)))
		future(before.Await(perdure.WithoutCancel(ctx)))
		future(perdure.CallSubOrchestrationByName[int](ctx, "missing", 1).Await(perdure.WithoutCancel(ctx)))
		future(perdure.WaitForExternalEvent[int](ctx, "e").Await(perdure.WithoutCancel(ctx)))
		future(perdure.CreateTimer(ctx, time.Hour).Await(perdure.WithoutCancel(ctx)))
		future(perdure.CreateTimer(ctx, 0).Await(perdure.WithoutCancel(ctx)))
		future(perdure.StartOrchestration(ctx, "missing", 1))
		wait(perdure.Sleep(ctx, time.Hour))
		wait(perdure.Sleep(ctx, 0))
		wait(perdure.WhenAll(ctx, settled))
		under, stop := perdure.WithCancel(ctx)
		stop()
		wait(under.Err())
		late, _ := perdure.WithTimeout(ctx, 0)
		wait(forever(late))
		i, anyErr := perdure.WhenAny(ctx, settled)
		wait(anyErr)
		j, selectErr := perdure.Select(ctx, settled, before)
		wait(selectErr)
		for n, other := range all {
			if other != err || err != ctx.Err() { //nolint:errorlint // the very error
				return "", fmt.Errorf("error %d: %w", n, other)
			}
		}
		if i != -1 || j != -1 {
			return "", fmt.Errorf("%d, %d", i, j)
		}
		return "", fmt.Errorf("unwound: %w", errors.Join(all...))
	})
	w.turn(cancel("enough"))
	if got := w.replayed().cancelled(); got != "requested: enough" {
		t.Error(got)
	}
	w.wantLines(5, "TurnStarted #5", "CancelRequested #6 (requested)", "ActivityCancelRequested #7 of #3 (requested)",
		"TimerCancelled #8 of #4 (requested)",
		"OrchestrationCancelled #9 (requested)")
}

func TestOrchestrationContextErr_scopeEnded_returnsReason(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		scope, stop := perdure.WithCancel(ctx)
		before := scope.Err()
		stop()
		stop()
		late, _ := perdure.WithTimeout(ctx, -1)
		dropped, timeout := scope.Err(), late.Err()
		return fmt.Sprint(before, ", ", dropped, " ", errors.Is(dropped, context.Canceled),
			errors.Is(dropped, context.DeadlineExceeded),
			", ", timeout, " ", errors.Is(timeout, context.Canceled), errors.Is(timeout, context.DeadlineExceeded),
			", ", ctx.Err()), nil
	})
	if got := w.replayed().
		output(); got != `"\u003cnil\u003e, cancelled (dropped_future) true false, cancelled (timeout) false true, \u003cnil\u003e"` {
		t.Error(got)
	}
	w.wantLines(2, "TurnStarted #2", "OrchestrationCompleted #3")
}

func TestWithCancel_outerScopeEnds_endsNestedScopes(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		outer, stopOuter := perdure.WithCancel(ctx)
		inner, stopInner := perdure.WithCancel(outer)
		sibling, _ := perdure.WithCancel(outer)
		apart := perdure.WithoutCancel(inner)
		underApart, _ := perdure.WithCancel(apart)
		var fs []perdure.Awaitable
		for _, c := range []*perdure.OrchestrationContext{ctx, outer, inner, sibling, apart, underApart} { // #3 to #8
			fs = append(fs, perdure.CallActivity(c, inc, 1))
		}
		stopInner()
		first := inner.Err()
		stopOuter()
		same := func(a, b *perdure.OrchestrationContext) bool {
			return a.Err() == b.Err() //nolint:errorlint // the very errors
		}
		innerStays := inner.Err() == first //nolint:errorlint // the very error
		if !innerStays || !same(sibling, outer) || same(sibling, inner) || apart.Err() != nil ||
			underApart.Err() != nil {
			return "", errors.New("the errors of scopes are mixed up")
		}
		_, err := perdure.WhenAny(ctx, fs[0], fs[4], fs[5])
		return "", err
	})
	w.wantLines(9, "ActivityCancelRequested #9 of #5 (dropped_future)",
		"ActivityCancelRequested #10 (dropped_future) [{4 4} {6 6}]")
	w.turn(cancel(""))
	w.replayed().cancelled()
	w.wantLines(11, "TurnStarted #11", "CancelRequested #12 (requested)",
		"ActivityCancelRequested #13 of #3 (requested)",
		"ActivityCancelRequested #14 (orchestration_terminal_cancelled) [{7 8}]",
		"OrchestrationCancelled #15 (requested)")
}

func TestWithTimeout_expires_endsScope(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		scope, stop := perdure.WithTimeout(ctx, time.Minute)
		defer stop()
		f := perdure.CallActivityByName[int](scope, "slow", 1)
		_, err := f.Await(scope)
		_, same := f.Await(ctx)
		if err != same || !errors.Is(err, context.DeadlineExceeded) { //nolint:errorlint // the very error
			return "", err
		}
		return fmt.Sprint(err, " after ", ctx.Now().Sub(epoch)), ctx.Err()
	})
	if got := w.run().replayed().output(); got != `"cancelled (timeout) after 1m0s"` {
		t.Error(got)
	}
	w.wantLines(3, "TimerCreated #3", `ActivityScheduled #4 "slow"`, "TurnStarted #5", "TimerFired #6 of #3",
		"ActivityCancelRequested #7 of #4 (timeout)", "OrchestrationCompleted #8")
}

func TestWithTimeout_scopeEndsFirst_cancelsTimer(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, stop := perdure.WithTimeout(ctx, time.Minute)
		defer stop()
		return perdure.CallActivity(scope, inc, 1).Await(scope)
	})
	if got := w.run().replayed().output(); got != "2" {
		t.Error(got)
	}
	w.wantLines(5, "TurnStarted #5", "ActivityCompleted #6 of #4", "TimerCancelled #7 of #3 (dropped_future)",
		"OrchestrationCompleted #8")
	if w.now != epoch {
		t.Errorf("got duration %v, want none", w.now.Sub(epoch))
	}
}

// A timeout that fires after its scope has ended, or a second time, has no effect.
func TestWithTimeout_firesAfterScopeOrTwice_isIgnored(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_, stop := perdure.WithTimeout(ctx, time.Minute)
		stop()
		perdure.WithTimeout(ctx, time.Minute)
		return 0, forever(ctx)
	})
	w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 3})
	w.wantLines(5, "TimerCreated #5", `ExternalEventSubscribed #6 "never"`)
	w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 5}).turn(history.Event{
		Kind: history.TimerFired, SourceEventID: 5,
	})
	w.replayed().wantLines(7, "TurnStarted #7", "TimerFired #8 of #5")
}

func TestWithTimeout_timerCannotBeSet_endsScope(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, _ := perdure.WithTimeout(ctx, time.Minute)
		return 0, forever(scope)
	})
	w.turn(history.Event{
		Kind: history.OutputFailed, SourceEventID: 3, Error: &history.Failure{Message: "no schedules left"},
	})
	if f := w.replayed().failure(); f.Reason != "timeout" ||
		f.Message != "its timer could not be set: no schedules left" {
		t.Errorf("got %+v", f)
	}
}

func TestWithTimeout_instanceCancelled_cancelsTimer(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, stop := perdure.WithTimeout(ctx, time.Minute)
		defer stop()
		return 0, perdure.Sleep(scope, time.Hour)
	})
	w.turn(cancel("enough"))
	w.replayed().cancelled()
	w.wantLines(5, "TurnStarted #5", "CancelRequested #6 (requested)", "TimerCancelled #7 (requested) [{3 4}]",
		"OrchestrationCancelled #8 (requested)")
}

func TestSelect_scopeTimesOut_leavesFuturesOfOtherScopesPending(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		scope, stop := perdure.WithTimeout(ctx, time.Minute)
		defer stop()
		outside, inside := perdure.CallActivityByName[int](ctx, "slow", 1),
			perdure.CallActivityByName[int](scope, "slow", 1)
		i, err := perdure.Select(scope, outside, inside)
		if i != -1 || !errors.Is(err, context.DeadlineExceeded) || outside.IsDone() || !inside.IsDone() {
			return "", fmt.Errorf("%d, %w", i, err)
		}
		// the future outside of the scope can still lose a select
		return fmt.Sprint(perdure.Select(ctx, outside, perdure.CallActivity(ctx, inc, 1))), nil
	})
	if got := w.run().replayed().output(); got != `"1 \u003cnil\u003e"` {
		t.Error(got)
	}
	w.wantLines(6, "TurnStarted #6", "TimerFired #7 of #3", "ActivityCancelRequested #8 of #5 (timeout)",
		`ActivityScheduled #9 "inc"`,
		"TurnStarted #10", "ActivityCompleted #11 of #9", "ActivityCancelRequested #12 of #4 (select_loser)",
		"OrchestrationCompleted #13")
}

func TestWhenAll_scopeEnds_returnsErrorOfScope(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (bool, error) {
		scope, stop := perdure.WithCancel(ctx)
		fs := []perdure.Awaitable{
			perdure.CallActivity(scope, inc, 1), perdure.CallActivityByName[int](scope, "slow", 1),
			perdure.CallActivityByName[int](scope, "slow", 1),
		}
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			_ = perdure.Sleep(ctx, time.Second)
			stop()
		})
		err := perdure.WhenAll(scope, fs...)
		return err == scope.Err(), nil //nolint:errorlint // the very error, not joined with itself
	})
	if got := w.run().replayed().output(); got != "true" {
		t.Error(got)
	}
}

// The code awaits a task of one scope with the context of another scope.
func TestAwait_scopeOfWaitEnds_leavesFuturePending(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		a, stopA := perdure.WithCancel(ctx)
		b, stopB := perdure.WithCancel(ctx)
		f := perdure.CallActivityByName[int](a, "slow", 1)
		perdure.Go(ctx, func(*perdure.OrchestrationContext) { stopB() })
		_, err := f.Await(b)
		if err != b.Err() || f.IsDone() { //nolint:errorlint // the very error
			return "", fmt.Errorf("the wait: %w", err)
		}
		perdure.Go(ctx, func(*perdure.OrchestrationContext) { stopA() })
		if _, err = f.Await(ctx); err != a.Err() { //nolint:errorlint // the very error
			return "", fmt.Errorf("the task: %w", err)
		}
		return "both", nil
	})
	if got := w.replayed().output(); got != `"both"` {
		t.Error(got)
	}
	w.wantLines(4, "ActivityCancelRequested #4 of #3 (dropped_future)", "OrchestrationCompleted #5")
}

func TestWaitForExternalEvent_scopeEnds_returnsUnobservedEvents(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		scope, stop := perdure.WithCancel(ctx)
		waits := []*perdure.Future[int]{
			perdure.WaitForExternalEvent[int](scope, "e"), perdure.WaitForExternalEvent[int](scope, "e"),
			perdure.WaitForExternalEvent[int](scope, "e"),
		}
		first, err := waits[0].Await(ctx)
		if err != nil {
			return nil, err
		}
		if err := forever(ctx); err == nil {
			return nil, errors.New("no cancel")
		}
		ctx = perdure.WithoutCancel(ctx)
		next := perdure.WaitForExternalEvent[int](ctx, "e") // receives its event after the returned ones
		stop()
		got := []int{first}
		for _, f := range []*perdure.Future[int]{next, perdure.WaitForExternalEvent[int](ctx, "e")} {
			n, err := f.Await(ctx)
			if err != nil {
				return nil, err
			}
			got = append(got, n)
		}
		if !errors.Is(errors.Join(errorOf(waits[1].Await(ctx)), errorOf(waits[2].Await(ctx))), context.Canceled) {
			return nil, errors.New("a wait has kept its event")
		}
		return got, nil
	})
	w.turn(raise("e", "1", "1"), raise("e", "2", "2"), raise("e", "3", "3"), cancel(""))
	if got := w.replayed().output(); got != "[1,2,3]" {
		t.Error(got)
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestWithoutCancel_instanceCancelled_runsCompensation(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (n int, err error) {
		defer func() {
			if err == nil {
				return
			}
			safe := perdure.WithoutCancel(ctx)
			_, refunded := perdure.CallActivityByName[int](safe, "refund", 1).Await(safe)
			err = errors.Join(err, refunded, perdure.Sleep(safe, time.Minute))
		}()
		return 0, perdure.Sleep(ctx, time.Hour)
	})
	w.turn(cancel("changed my mind"), cancel("again"))
	w.replayed().wantLines(4, "TurnStarted #4", "CancelRequested #5 (requested)", "TimerCancelled #6 of #3 (requested)",
		`ActivityScheduled #7 "refund"`)
	failing := *w
	w.turn(outcome(7, "1"), cancel("still")).run()
	if got := w.replayed().cancelled(); got != "requested: changed my mind" {
		t.Error(got)
	}
	failing.history = failing.history[:7]
	failing.instance = failing.open()
	if err := failing.instance.Replay(failing.history); err != nil {
		t.Fatal(err)
	}
	failing.due = nil
	failing.turn(history.Event{
		Kind: history.ActivityFailed, SourceEventID: 7, Error: &history.Failure{Type: "NoFunds", Message: "empty"},
	}).run()
	if f := failing.replayed().failure(); !strings.Contains(f.Message, "NoFunds") ||
		!strings.Contains(f.Message, "changed my mind") {
		t.Errorf("got %+v", f)
	}
}

// The error that a cancelled instance returns decides whether it is cancelled, failed or completed.
func TestCancel_returnedError_decidesKindOfEnd(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for name, tt := range map[string]struct {
		end  func(ctx *perdure.OrchestrationContext, err error) (int, error)
		want history.Kind
	}{
		"its error": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			return 1, err
		}, history.OrchestrationCancelled},
		"ctx.Err": {func(ctx *perdure.OrchestrationContext, _ error) (int, error) {
			return 1, ctx.Err()
		}, history.OrchestrationCancelled},
		"wrapped and joined": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			return 1, errors.Join(fmt.Errorf("x: %w", err), perdure.NonRetryable(err))
		}, history.OrchestrationCancelled},
		"with another": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			return 1, errors.Join(err, other)
		}, history.OrchestrationFailed},
		"another": {func(*perdure.OrchestrationContext, error) (int, error) {
			return 1, other
		}, history.OrchestrationFailed},
		"equal error": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			e, _ := errors.AsType[*perdure.CancelledError](err)
			same := *e
			return 1, &same
		}, history.OrchestrationFailed},
		"only its text": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			return 1, errors.New(err.Error())
		}, history.OrchestrationFailed},
		"none": {func(*perdure.OrchestrationContext, error) (int, error) {
			return 1, nil
		}, history.OrchestrationCompleted},
		"a panic with it": {func(_ *perdure.OrchestrationContext, err error) (int, error) {
			panic(err)
		}, history.OrchestrationFailed},
		"panics while unwinding": {func(ctx *perdure.OrchestrationContext, err error) (int, error) {
			defer func() {
				_ = perdure.Sleep(perdure.WithoutCancel(ctx), time.Second)
				panic("no refund")
			}()
			return 1, err
		}, history.OrchestrationFailed},
		"continues": {func(ctx *perdure.OrchestrationContext, _ error) (int, error) {
			return perdure.ContinueAsNew[int](ctx, 2)
		}, history.OrchestrationCancelled},
		"continues as new in another scope with the error": {func(ctx *perdure.OrchestrationContext, err error) (int, error) {
			_, order := perdure.ContinueAsNew[int](perdure.WithoutCancel(ctx), 2)
			return 1, errors.Join(order, err)
		}, history.OrchestrationCancelled},
		"continues as new with another error": {func(ctx *perdure.OrchestrationContext, err error) (int, error) {
			_, order := perdure.ContinueAsNew[int](ctx, 2)
			return 1, errors.Join(order, err, other)
		}, history.OrchestrationFailed},
		"another timeout": {func(ctx *perdure.OrchestrationContext, _ error) (int, error) {
			scope, _ := perdure.WithTimeout(perdure.WithoutCancel(ctx), 0)
			return 1, scope.Err()
		}, history.OrchestrationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				return tt.end(ctx, forever(ctx))
			})
			w.turn(cancel("enough")).run().replayed()
			if got := w.end(); got.Kind != tt.want ||
				got.Kind == history.OrchestrationCancelled && (got.Reason != "requested" || got.Message != "enough") {
				t.Errorf("%s: got %+v", got.String(), got.Error)
			}
		})
	}
}

// Only the cancellation of the instance ends it as cancelled. The timeout of another scope fails it.
func TestWithTimeout_errorReturned_failsInstance(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, _ := perdure.WithTimeout(ctx, time.Minute)
		return 0, forever(scope)
	})
	if f := w.run().replayed().failure(); f.Type != history.TypeCancelled || f.Reason != "timeout" {
		t.Errorf("got %+v", f)
	}
}

// The message before the cancellation continues the instance as new, so the next execution receives the cancellation.
func TestCancel_duringContinueAsNew_reachesNextExecution(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "next").Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, n+1)
	})
	w.turn(raise("next", "1", "1"), cancel("enough"), raise("next", "2", "1"))
	if got := w.replayed().cancelled(); got != "requested: enough" || w.history[0].Number != 2 {
		t.Errorf("got %s in execution %d", got, w.history[0].Number)
	}
}

func TestContinueAsNew_contextOfScope_continues(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n == 3 {
			return n, nil
		}
		scope, stop := perdure.WithCancel(ctx)
		defer stop()
		return perdure.ContinueAsNew[int](scope, n+1)
	})
	if got := w.replayed().output(); got != "3" {
		t.Error(got)
	}
}

// The end of a scope ends all scopes inside it and wakes the waiting coroutines in the order of their starts. A replay
// has the same order.
func TestWithCancel_scopeEnds_wakesCoroutinesInStartOrder(t *testing.T) {
	t.Parallel()
	const n = 50
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		outer, stop := perdure.WithCancel(ctx)
		never := perdure.WaitForExternalEvent[int](ctx, "never")
		var order []int
		var fs []perdure.Awaitable
		for i := range n {
			scope, _ := perdure.WithCancel(outer)
			through := []*perdure.OrchestrationContext{outer, scope}
			fs = append(fs, perdure.Go(scope, func(scope *perdure.OrchestrationContext) {
				perdure.CallActivityByName[int](scope, "slow", i)
				if _, err := never.Await(through[i%2]); err != nil {
					order = append(order, i)
				}
			}))
		}
		err := perdure.Sleep(ctx, time.Minute)
		stop()
		return order, errors.Join(err, perdure.WhenAll(ctx, fs...))
	})
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	if got := w.run().replayed().output(); got != "["+strings.Join(want, ",")+"]" {
		t.Error(got)
	}
	w.wantLines(n+5, fmt.Sprint("TurnStarted #", n+5), fmt.Sprint("TimerFired #", n+6, " of #4"),
		fmt.Sprintf("ActivityCancelRequested #%d (dropped_future) [{5 %d}]", n+7, n+4),
		fmt.Sprint("OrchestrationCompleted #", n+8))
}

func TestWithoutCancel_instanceCancelled_keepsWaiting(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		safe := perdure.WithoutCancel(ctx)
		f, held := perdure.WaitForExternalEvent[int](safe, "e"), perdure.WaitForExternalEvent[int](safe, "held")
		if err := forever(ctx); err == nil {
			return 0, errors.New("no cancel")
		}
		n, err := f.Await(safe)
		m, heldErr := held.Await(safe)
		return 10*n + m, errors.Join(err, heldErr)
	})
	w.turn(raise("held", "1", "1"), cancel(""), raise("e", "2", "2"))
	if got := w.replayed().output(); got != "21" {
		t.Error(got)
	}
}

// Events that return to the buffer are received in the order of their arrival, whichever wait held them.
func TestWaitForExternalEvent_severalEventsReturned_keepArrivalOrder(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		scope, stop := perdure.WithCancel(ctx)
		wait := func(ctx *perdure.OrchestrationContext) *perdure.Future[int] {
			return perdure.WaitForExternalEvent[int](ctx, "e")
		}
		first, _, _ := wait(scope), wait(scope), wait(scope) // the first two hold events 1 and 2
		next := wait(ctx)
		err := perdure.Sleep(ctx, time.Minute)
		first.Cancel("") // the third holds event 1
		stop()
		one, err1 := next.Await(ctx)
		two, err2 := wait(ctx).Await(ctx)
		return []int{one, two}, errors.Join(err, err1, err2)
	})
	w.turn(raise("e", "1", "1"), raise("e", "2", "2"))
	if got := w.run().replayed().output(); got != "[1,2]" {
		t.Error(got)
	}
}

// The cancellation of the instance returns a received event to the buffer. The cleanup can wait for the event.
func TestWaitForExternalEvent_instanceCancelled_returnsEventForCleanup(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		held := perdure.WaitForExternalEvent[int](ctx, "e")
		if err := forever(ctx); err == nil || !held.IsDone() {
			return 0, errors.New("no cancel")
		}
		safe := perdure.WithoutCancel(ctx)
		if _, err := held.Await(safe); err != ctx.Err() { //nolint:errorlint // the very error
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](safe, "e").Await(safe)
	})
	w.turn(raise("e", "1", "7"), cancel(""))
	if got := w.replayed().output(); got != "7" {
		t.Error(got)
	}
}

// The scope of a WhenAll ends while one future is pending. WhenAll has reported no result, so a received event of
// another future goes to the next wait. The position of the future does not matter.
func TestWhenAll_scopeTimesOut_leavesReceivedEventForNextWait(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			limited, stop := perdure.WithTimeout(ctx, time.Hour)
			defer stop()
			fs := []perdure.Awaitable{
				perdure.WaitForExternalEvent[string](limited, "e"),
				perdure.CallActivityByName[int](limited, "missing", 1),
			}
			if !first {
				fs[0], fs[1] = fs[1], fs[0]
			}
			if err := perdure.WhenAll(limited, fs...); !errors.Is(err, context.DeadlineExceeded) {
				return "", fmt.Errorf("it is %w", err)
			}
			return take(ctx, "e", 2)
		})
		w.turn(raise("e", "1", `"a"`)).run()
		w.turn(raise("e", "2", `"b"`))
		if got := w.replayed().output(); got != `"a b"` {
			t.Errorf("event first=%v: got %s", first, got)
		}
	}
}

// After WhenAll has returned, its events stay consumed when the scope ends.
func TestWhenAll_allDone_consumesEvents(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		scope, stop := perdure.WithCancel(ctx)
		a, b := perdure.WaitForExternalEvent[string](scope, "e"), perdure.WaitForExternalEvent[string](scope, "e")
		if err := perdure.WhenAll(scope, b, a); err != nil {
			return "", err
		}
		stop()
		return take(ctx, "e", 1)
	})
	w.turn(raise("e", "1", `"a"`), raise("e", "2", `"b"`))
	w.turn(raise("e", "3", `"c"`))
	if got := w.replayed().output(); got != `"c"` {
		t.Error(got)
	}
}
