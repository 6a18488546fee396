package perdure_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// The engine records the same reasons for its own cancel requests.
func TestCancelReason_orchestrationEnds_isRecordedWithCancelRequests(t *testing.T) {
	t.Parallel()
	body := func(end func(ctx *perdure.OrchestrationContext, err error) (int, error)) *world {
		return orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			perdure.CallActivityByName[int](perdure.WithoutCancel(ctx), "slow", 1)
			perdure.CallSubOrchestrationByName[int](ctx, "missing", 1)
			return end(ctx, forever(ctx))
		})
	}
	for reason, w := range map[perdure.CancelReason]*world{
		perdure.ReasonOrchestrationCompleted: body(func(*perdure.OrchestrationContext, error) (int, error) {
			return 0, nil
		}).turn(cancel("")),
		perdure.ReasonOrchestrationFailed: body(func(*perdure.OrchestrationContext, error) (int, error) {
			return 0, errors.New("x")
		}).turn(cancel("")),
		perdure.ReasonOrchestrationCancelled: body(func(_ *perdure.OrchestrationContext, err error) (int, error) {
			return 0, err
		}).turn(cancel("")),
		perdure.ReasonOrchestrationTerminated: body(nil).turn(history.Event{Kind: history.OrchestrationTerminated}),
	} {
		last := w.history[len(w.history)-2]
		if reason == perdure.ReasonOrchestrationTerminated {
			last = w.history[len(w.history)-3]
		} else if child := w.history[7]; child.Kind != history.SubOrchestrationCancelRequested ||
			child.Reason != string(perdure.ReasonParentCancelled) {
			t.Errorf("got %+v", child)
		}
		if last.Kind != history.ActivityCancelRequested || last.Reason != string(reason) ||
			last.RequestedBy != history.RequestedByEngine || last.SourceEventID != 3 {
			t.Errorf("%s: got %+v", reason, last)
		}
		w.replayed()
	}
}

func TestCancel_codeIgnoresError_completes(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		n, _ := perdure.CallActivity(ctx, inc, 1).Await(ctx)
		return n, nil
	})
	if got := w.turn(cancel("")).replayed().output(); got != "0" {
		t.Error(got)
	}
}

// A cancelled child fails its caller with a cancelled error. The caller itself is not cancelled.
func TestCallSubOrchestration_childIsCancelled_returnsCancelledError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "missing", 1).Await(ctx)
		e, ok := errors.AsType[*perdure.CancelledError](err)
		if _, child := errors.AsType[*perdure.SubOrchestrationError](err); !ok || !child || ctx.Err() != nil {
			return "", err
		}
		return "", e
	})
	w.turn(history.Event{
		Kind: history.SubOrchestrationFailed, SourceEventID: 3,
		Error: &history.Failure{Type: history.TypeCancelled, Reason: "requested", Message: "m"},
	})
	if f := w.replayed().failure(); f.Type != history.TypeCancelled || f.Message != "m" {
		t.Errorf("got %+v", f)
	}
}

// The cancellation of the caller settles the future of the child at once. The end of the child is recorded later.
func TestCallSubOrchestration_callerIsCancelled_settlesAtOnceAndRecordsEndOfChild(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		policy := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 5})
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "missing", 1, perdure.WithInstanceID("k"),
			policy).Await(ctx)
		safe := perdure.WithoutCancel(ctx)
		return 0, errors.Join(err, perdure.Sleep(safe, time.Minute))
	})
	w.turn(cancel("stop"),
		history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: 3, Error: &history.Failure{Type: "E"}}).run()
	w.replayed().cancelled()
	w.wantLines(4, "TurnStarted #4", "CancelRequested #5 (requested)",
		"SubOrchestrationCancelRequested #6 of #3 (parent_cancelled)", "TimerCreated #7",
		"SubOrchestrationFailed #8 of #3", "TurnStarted #9", "TimerFired #10 of #7",
		"OrchestrationCancelled #11 (requested)")
	if c := w.history[5]; c.InstanceID != "k" || c.Message != "stop" || c.RequestedBy != history.RequestedByEngine {
		t.Errorf("got %+v", c)
	}
}

// A child that waits for its next attempt has only a timer, which the cancellation cancels.
func TestCancel_childWaitsForRetry_cancelsRetryTimer(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallSubOrchestrationByName[int](ctx, "missing", 1,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 5})).Await(ctx)
	})
	w.turn(history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: 3, Error: &history.Failure{Type: "E"}},
		cancel(""))
	w.replayed().wantLines(4, "TurnStarted #4", "SubOrchestrationFailed #5 of #3", "TimerCreated #6",
		"CancelRequested #7 (requested)",
		"TimerCancelled #8 of #6 (requested)", "OrchestrationCancelled #9 (requested)")
}

func TestCallActivity_cancelledByClient_returnsCancelledError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "slow", 1).Await(ctx)
		_, is := errors.AsType[*perdure.CancelledError](err)
		return fmt.Sprint(err, " ", is), ctx.Err()
	})
	w.turn(history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested", Message: "by hand",
		RequestedBy: history.RequestedByClient,
	})
	if got := w.replayed().output(); got != `"cancelled (requested): by hand true"` {
		t.Error(got)
	}
}

func TestCancel_manyActivities_isOneEvent(t *testing.T) {
	t.Parallel()
	const n = 2000
	for name, stop := range map[string]history.Event{
		"cancel": cancel(""), "terminate": {Kind: history.OrchestrationTerminated},
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			fs := make([]perdure.Awaitable, n)
			for i := range fs {
				fs[i] = perdure.CallActivityByName[int](ctx, "slow", i)
			}
			return 0, perdure.WhenAll(ctx, fs...)
		})
		before := len(w.history)
		w.turn(stop).replayed()
		added := w.history[before:]
		if len(added) != 4-len(name)/len("terminate") {
			t.Errorf("%s: got %d events", name, len(added))
		}
		for _, ev := range added {
			if ev.Kind == history.ActivityCancelRequested &&
				(len(ev.SourceEventIDs) != 1 || ev.SourceEventIDs[0] != (history.Range{First: 3, Last: n + 2})) {
				t.Errorf("%s: got %v", name, ev.SourceEventIDs)
			}
		}
	}
}

func TestCancel_activitiesOfAlternatingScopes_isOneEventForEachScope(t *testing.T) {
	t.Parallel()
	const n = 100_000
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, _ := perdure.WithTimeout(ctx, time.Minute)
		for i := range n {
			of := scope
			if i%2 > 0 {
				of = ctx
			}
			perdure.CallActivityByName[int](of, "slow", 0)
		}
		return 0, forever(scope)
	})
	began := w.instance.LastEventID()
	w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 3})
	w.wantKindsFrom(int(began)+1, history.TurnStarted, history.TimerFired, history.ActivityCancelRequested,
		history.ActivityCancelRequested, history.OrchestrationFailed)
	for i, ev := range w.history[began+2 : began+4] {
		if len(ev.SourceEventIDs) != n/2 || ev.SourceEventIDs[1].First != int64(6+i) {
			t.Errorf("got %d ranges: %v", len(ev.SourceEventIDs), ev.SourceEventIDs[:2])
		}
	}
	w.replayed()
}

func (w *world) wantKindsFrom(from int, want ...history.Kind) {
	w.t.Helper()
	if got := len(w.history) - from + 1; got != len(want) {
		w.t.Fatalf("got %d events: %s", got, w.lines(from))
	}
	for i, kind := range want {
		if got := w.history[from-1+i].Kind; got != kind {
			w.t.Errorf("event %d: got %s, want %s", from+i, got, kind)
		}
	}
}

// The cost of many scopes grows with their number, not with its square.
func TestWithTimeout_thousandScopes_eachTimesOut(t *testing.T) {
	t.Parallel()
	const n = 1000
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		late := 0
		var fs []perdure.Awaitable
		for range n {
			fs = append(fs, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
				scope, stop := perdure.WithTimeout(ctx, time.Minute)
				defer stop()
				if _, err := perdure.CallActivityByName[int](scope, "slow", 0).Await(scope); err != nil {
					late++
				}
			}))
		}
		err := perdure.WhenAll(ctx, fs...)
		return late, err
	})
	if got := w.run().replayed().output(); got != fmt.Sprint(n) {
		t.Error(got)
	}
}

func TestWithCancel_coroutinesInEndedScope_cleanUpBeforeTheySettle(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]string, error) {
		var log []string
		scope, stop := perdure.WithCancel(ctx)
		worker := func(name string) *perdure.Future[int] {
			return perdure.Async(scope, func(ctx *perdure.OrchestrationContext) (int, error) {
				err := perdure.Sleep(ctx, time.Hour)
				log = append(log, name+" "+err.Error())
				safe := perdure.WithoutCancel(ctx)
				err = errors.Join(err, perdure.Sleep(safe, time.Minute))
				log = append(log, name+" is clean")
				return 7, err
			})
		}
		a, b := worker("a"), worker("b")
		if err := perdure.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
		stop()
		log = append(log, "stopped")
		if a.IsDone() || b.IsDone() {
			return nil, errors.New("a coroutine's future settles when the coroutine ends")
		}
		if err := perdure.WhenAll(scope, a, b); err != scope.Err() { //nolint:errorlint // the very error
			return nil, err
		}
		if _, err := a.Await(ctx); err == nil || errors.Unwrap(err) != nil {
			return nil, fmt.Errorf("a: %w", err)
		}
		late := perdure.Go(scope, func(ctx *perdure.OrchestrationContext) {
			log = append(log, "late: "+ctx.Err().Error())
		})
		return log, errors.Join(errorOf(late.Await(ctx)), nil)
	})
	if got := w.run().replayed().
		output(); got != `["stopped","a cancelled (dropped_future)","b cancelled (dropped_future)","a is clean","late: cancelled (dropped_future)"]` {
		t.Error(got)
	}
}

// A cancelled coroutine continues its cleanup while the body waits for the coroutine in a context without cancellation.
func TestWithoutCancel_awaitOfCancelledCoroutine_waitsForItsCleanup(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
			err := forever(ctx)
			safe := perdure.WithoutCancel(ctx)
			_, undone := perdure.CallActivity(safe, inc, 1).Await(safe)
			return 0, errors.Join(err, undone)
		})
		return f.Await(perdure.WithoutCancel(ctx))
	})
	w.turn(cancel("enough")).run()
	if got := w.replayed().cancelled(); got != "requested: enough" {
		t.Error(got)
	}
	w.wantLines(4, "TurnStarted #4", "CancelRequested #5 (requested)", `ActivityScheduled #6 "inc"`, "TurnStarted #7",
		"ActivityCompleted #8 of #6", "OrchestrationCancelled #9 (requested)")
}
