package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// awaited starts an orchestration whose activities do not run. The test supplies their outcomes.
func awaited(t *testing.T, fn func(*perdure.OrchestrationContext) (string, error)) *world {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) { return fn(ctx) })
	return newWorld(t, r).start("o", 1)
}

func charge(ctx *perdure.OrchestrationContext) *perdure.Future[string] {
	return perdure.CallActivityByName[string](ctx, "charge", 1, perdure.WaitForCancellation())
}

// ended describes the error of a call that was cancelled with WaitForCancellation.
func ended(err error) string {
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return fmt.Sprint("not cancelled: ", err)
	}
	return fmt.Sprintf("%s %q %s", c.Reason, c.Message, c.CancelOutcome)
}

func done(id int64) history.Event {
	return history.Event{
		Kind: history.ActivityCompleted, SourceEventID: id, Attempt: 1, Result: history.Payload(`"done"`),
	}
}

func TestWaitForCancellation_cancelledActivity_settlesWhenItEnds(t *testing.T) {
	t.Parallel()
	failed := func(attempt int, ended string) history.Event {
		e := history.Event{
			Kind: history.ActivityFailed, SourceEventID: 3, Attempt: attempt, Error: &history.Failure{Type: "E"},
		}
		if ended != "" {
			e.Cancel = &history.CancelDetails{Outcome: ended}
		}
		return e
	}
	for want, end := range map[string]history.Event{
		"returned":    done(3),
		"given_up":    failed(1, history.OutcomeAbandoned),
		"never_began": {Kind: history.OutputFailed, SourceEventID: 3, Error: &history.Failure{Type: "E"}},
		"worker_gone": failed(1, history.OutcomeWorkerLost),
		"timed_out":   failed(0, ""),
	} {
		w := awaited(t, func(ctx *perdure.OrchestrationContext) (string, error) {
			f := charge(ctx)
			f.Cancel("no")
			f.Cancel("again") // changes nothing
			if f.IsDone() {
				return "", errors.New("it is done at once")
			}
			_, err := f.Await(ctx)
			_, again := f.Await(ctx)
			if err != again || !f.IsDone() { //nolint:errorlint // the very error
				return "", fmt.Errorf("it changes: %w, %w", err, again)
			}
			return ended(err), nil
		})
		if w.instance.Ended() {
			t.Fatalf("%s: ended without waiting: history %s", want, kinds(w.history))
		}
		if got := w.turn(end).replayed().output(); got != fmt.Sprintf("%q", `requested "no" `+want) {
			t.Errorf("%s: got %s", want, got)
		}
	}
}

// A wait in a running scope continues until the call has ended, whatever the reason of the cancellation. A wait in an
// ended scope returns at once.
func TestWaitForCancellation_anyCancelReason_waitsForEnd(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		body  func(ctx *perdure.OrchestrationContext) (string, error)
		input history.Event
		first string // the custom status before the call has ended
	}{
		`timeout "" returned`: {func(ctx *perdure.OrchestrationContext) (string, error) {
			scope, cancel := perdure.WithTimeout(ctx, time.Second)
			defer cancel()
			f := charge(scope)
			_, err := f.Await(scope)
			ctx.SetCustomStatus(ended(err))
			_, err = f.Await(ctx)
			return ended(err), nil
		}, history.Event{Kind: history.TimerFired, SourceEventID: 3}, `timeout "" `},
		`dropped_future "" returned`: {func(ctx *perdure.OrchestrationContext) (string, error) {
			scope, cancel := perdure.WithCancel(ctx)
			f := charge(scope)
			_ = perdure.Sleep(ctx, time.Second)
			cancel()
			_, err := f.Await(scope)
			ctx.SetCustomStatus(ended(err))
			_, err = f.Await(ctx)
			return ended(err), nil
		}, history.Event{Kind: history.TimerFired, SourceEventID: 4}, `dropped_future "" `},
		`select_loser "" returned`: {func(ctx *perdure.OrchestrationContext) (string, error) {
			f := charge(ctx)
			if _, err := perdure.Select(ctx, perdure.CreateTimer(ctx, time.Second), f); err != nil {
				return "", err
			}
			ctx.SetCustomStatus("selected")
			_, err := f.Await(ctx)
			return ended(err), nil
		}, history.Event{Kind: history.TimerFired, SourceEventID: 4}, "selected"},
		`requested "one" returned`: {func(ctx *perdure.OrchestrationContext) (string, error) {
			f := charge(ctx)
			perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) { ctx.SetCustomStatus("continues") })
			_, err := f.Await(ctx)
			return ended(err), nil
		}, history.Event{
			Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested", Message: "one",
			RequestedBy: history.RequestedByClient,
		}, "continues"},
	} {
		w := awaited(t, c.body).turn(c.input)
		if w.instance.Ended() {
			t.Fatalf("%s: ended without waiting: history %s", want, kinds(w.history))
		}
		id := int64(3)
		for i := range w.history {
			if w.history[i].Kind == history.ActivityScheduled {
				id = w.history[i].ID
			}
		}
		w.replayed().turn(done(id)).replayed()
		if got := w.output(); got != fmt.Sprintf("%q", want) {
			t.Errorf("%s: got %s", want, got)
		}
		first := ""
		for i := range w.history {
			if w.history[i].Kind == history.CustomStatusSet {
				first = string(w.history[i].CustomStatus)
			}
		}
		if first != fmt.Sprintf("%q", c.first) {
			t.Errorf("%s: got first %s, want %q", want, first, c.first)
		}
	}
}

// An instance that is cancelled and returns the errors of its calls ends as Cancelled, not as Failed.
func TestWaitForCancellation_errorOfCallReturned_instanceIsCancelled(t *testing.T) {
	t.Parallel()
	w := awaited(t, func(ctx *perdure.OrchestrationContext) (string, error) {
		f := charge(ctx)
		_, err := f.Await(ctx)
		_, end := f.Await(perdure.WithoutCancel(ctx))
		if got := ended(end); got != `requested "no" returned` {
			return "", errors.New(got)
		}
		return "", errors.Join(err, fmt.Errorf("charge: %w", end))
	}).turn(cancel("no"))
	if w.instance.Ended() {
		t.Fatal("the instance ended without waiting")
	}
	if got := w.turn(done(3)).replayed().cancelled(); got != "requested: no" {
		t.Error(got)
	}
}

// The call settles when the sub-orchestration has ended. Between two attempts, it settles at once.
func TestWaitForCancellation_cancelledSubOrchestration_settlesWhenItEnds(t *testing.T) {
	t.Parallel()
	failed := history.Event{
		Kind: history.SubOrchestrationFailed, SourceEventID: 3, InstanceID: "kid",
		Error: &history.Failure{Type: history.TypeCancelled},
	}
	for name, c := range map[string]struct {
		before []history.Event
		end    []history.Event
		want   string
	}{
		"completed": {
			nil,
			[]history.Event{
				{Kind: history.SubOrchestrationCompleted, SourceEventID: 3, Result: history.Payload(`"x"`)},
			},
			"over",
		},
		"cancelled without a retry": {nil, []history.Event{failed}, "over"},
		"not found": {nil, []history.Event{{
			Kind: history.SubOrchestrationCancelFailed, SourceEventID: 3, InstanceID: "kid",
			Error: &history.Failure{Type: history.TypeNotFound},
		}}, "not_found"},
		"over": {nil, []history.Event{{
			Kind: history.SubOrchestrationCancelFailed, SourceEventID: 3, InstanceID: "kid",
			Error: &history.Failure{Type: history.TypeEnded},
		}}, "over"},
		"between two attempts": {[]history.Event{{
			Kind: history.SubOrchestrationFailed, SourceEventID: 3, InstanceID: "kid",
			Error: &history.Failure{Type: "E"},
		}}, nil, "over"},
		"start failed": {nil, []history.Event{{
			Kind: history.OutputFailed, SourceEventID: 3, Error: &history.Failure{Type: "E"},
		}}, "never_began"},
		"start of the next attempt failed": {[]history.Event{
			{
				Kind: history.SubOrchestrationFailed, SourceEventID: 3, InstanceID: "kid",
				Error: &history.Failure{Type: "E"},
			},
			{Kind: history.TimerFired, SourceEventID: 7},
		}, []history.Event{{Kind: history.OutputFailed, SourceEventID: 9, Error: &history.Failure{Type: "E"}}}, "over"},
	} {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			f := perdure.CallSubOrchestrationByName[string](ctx, "kid", 1, perdure.WithInstanceID("kid"),
				perdure.WaitForCancellation(),
				perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour}))
			if _, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx); err != nil {
				return "", err
			}
			f.Cancel("no")
			_, err := f.Await(ctx)
			return ended(err), nil
		})
		w := newWorld(t, r).start("o", 1)
		w.turn(c.before...).turn(history.Event{
			Kind: history.ExternalEventRaised, Name: "e", EventID: "1", Data: history.Payload("1"),
		})
		if len(c.end) > 0 && w.instance.Ended() {
			t.Fatalf("%s: ended without waiting", name)
		}
		if got := w.turn(c.end...).replayed().output(); got != fmt.Sprintf("%q", `requested "no" `+c.want) {
			t.Errorf("%s: got %s, %s", name, got, kinds(w.history))
		}
	}
}

// After an error or a panic, Compensate cancels the pending calls with WaitForCancellation in its scope and in the
// scopes inside it, and waits until they have ended.
func TestCompensate_callsWithWaitForCancellation_undoesAfterTheirEnd(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func() error{
		"an error": func() error { return errLate },
		"a panic":  func() error { panic("too late") },
	} {
		undone := 0
		w := awaited(t, func(ctx *perdure.OrchestrationContext) (_ string, err error) {
			under, cancelUnder := perdure.WithCancel(ctx)
			beside, _ := perdure.WithCancel(perdure.WithoutCancel(ctx))
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { undone += 10; return nil })
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { undone++; return nil })
			charge(ctx)                                           // 3
			charge(under)                                         // 4
			charge(beside)                                        // 5, in another scope
			perdure.CallActivityByName[string](ctx, "unheard", 1) // 6
			f := charge(ctx)                                      // 7
			_ = perdure.Sleep(ctx, time.Second)                   // 8
			f.Cancel("this one")                                  // is not cancelled again
			cancelUnder()
			return "", fails()
		})
		w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 8})
		for _, id := range []int64{3, 4, 7} {
			if undone > 0 || w.instance.Ended() {
				t.Fatalf("%s: compensated before event %d ended", name, id)
			}
			w.replayed().turn(done(id))
		}
		if w.replayed().failure(); undone < 11 {
			t.Errorf("%s: got %d compensations", name, undone)
		}
		reasons := map[int64]string{}
		for i := range w.history {
			if e := &w.history[i]; e.Kind == history.ActivityCancelRequested {
				for _, id := range e.Sources() {
					reasons[id] += e.Reason
				}
			}
		}
		want := map[int64]string{
			3: "dropped_future", 4: "dropped_future", 7: "requested", 5: "orchestration_terminal_failed",
			6: "orchestration_terminal_failed",
		}
		if fmt.Sprint(reasons) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, reasons, want)
		}
	}
}

// Compensate also waits for a call that a coroutine schedules after the cancellation of its previous call.
func TestCompensate_callScheduledMeanwhile_undoesAfterItsEnd(t *testing.T) {
	t.Parallel()
	undone := false
	w := awaited(t, func(ctx *perdure.OrchestrationContext) (_ string, err error) {
		defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { undone = true; return nil })
		perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			_, _ = charge(ctx).Await(ctx)
			_, _ = charge(ctx).Await(ctx)
		})
		_ = perdure.Sleep(ctx, time.Second)
		return "", errLate
	})
	w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 3}).turn(done(4))
	if undone || w.instance.Ended() {
		t.Fatalf("compensated: got %v, history %s", undone, kinds(w.history))
	}
	second := w.history[len(w.history)-2]
	if second.Kind != history.ActivityScheduled {
		t.Fatal(kinds(w.history))
	}
	if w.turn(done(second.ID)).replayed().failure(); !undone {
		t.Error("the call was not compensated")
	}
}

// The context without cancellation is shared by the whole execution, so Compensate cancels no calls in it.
func TestCompensate_contextWithoutCancel_cancelsNothing(t *testing.T) {
	t.Parallel()
	w := awaited(t, func(ctx *perdure.OrchestrationContext) (string, error) {
		safe := perdure.WithoutCancel(ctx)
		others := charge(safe)
		_, err := perdure.Async(ctx, func(*perdure.OrchestrationContext) (_ string, err error) {
			defer perdure.Compensate(safe, &err, func(*perdure.OrchestrationContext) error { return nil })
			return "", errLate
		}).Await(ctx)
		if !errors.Is(err, errLate) {
			return "", err
		}
		return others.Await(ctx)
	})
	if got := w.turn(done(3)).replayed().output(); got != `"done"` {
		t.Error(got)
	}
}

// The history records the option. Code that adds or removes the option does not change a call that is already recorded.
func TestWaitForCancellation_changedCode_followsHistory(t *testing.T) {
	t.Parallel()
	body := func(opts ...perdure.ActivityCallOption) *perdure.Registry {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			f := perdure.CallActivityByName[string](ctx, "charge", 1, opts...)
			_ = perdure.Sleep(ctx, time.Second)
			f.Cancel("no")
			_, err := f.Await(ctx)
			return ended(err), nil
		})
		return r
	}
	for _, waits := range []bool{false, true} {
		was, is := body(), body(perdure.WaitForCancellation())
		if waits {
			was, is = is, was
		}
		w := newWorld(t, was).start("o", 1)
		w.registry = is
		code, _ := codeOf(is).Orchestration("o", "")
		w.code = code
		w.instance = w.open()
		if err := w.instance.Replay(w.history); err != nil {
			t.Fatal(err)
		}
		if w.turn(history.Event{Kind: history.TimerFired, SourceEventID: 4}); w.instance.Ended() == waits {
			t.Errorf("waits=%v: ended %v", waits, w.instance.Ended())
		}
	}
}

// The outcome of a cancelled call is part of the error, and of the failure that the error becomes.
func TestCancelOutcome_errorOfActivityOrChild_reachesCaller(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "kid", func(*perdure.OrchestrationContext, int) (string, error) {
		return "", &perdure.CancelledError{
			Reason: perdure.ReasonTimeout, Message: "m", CancelOutcome: perdure.OutcomeAbandoned,
		}
	})
	perdure.AddActivity(r, "act", func(context.Context, int) (string, error) {
		return "", fmt.Errorf("w: %w", &perdure.CancelledError{
			Reason: perdure.ReasonTimeout, Message: "m", CancelOutcome: perdure.OutcomeReturned,
		})
	})
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, kid := perdure.CallSubOrchestrationByName[string](ctx, "kid", 1).Await(ctx)
		_, act := perdure.CallActivityByName[string](ctx, "act", 1).Await(ctx)
		failed, _ := errors.AsType[*perdure.SubOrchestrationError](kid)
		return ended(errors.Join(errLate, kid)) + "; " + ended(act) + "; " + string(failed.CancelOutcome), nil
	})
	want := `timeout "m" given_up; timeout "w: cancelled (timeout, returned): m" returned; given_up`
	if got := newWorld(t, r).start("o", 1).run().replayed().output(); got != fmt.Sprintf("%q", want) {
		t.Error(got)
	}
}

// The end of an orchestration waits for no call, and does not cancel a cancelled call again.
func TestWaitForCancellation_orchestrationEnds_cancelsOnlyOnce(t *testing.T) {
	t.Parallel()
	w := awaited(t, func(ctx *perdure.OrchestrationContext) (string, error) {
		charge(ctx).Cancel("no")
		return "over", nil
	}).replayed()
	cancels := 0
	for i := range w.history {
		if w.history[i].Kind == history.ActivityCancelRequested {
			cancels++
		}
	}
	if w.output() != `"over"` || cancels != 1 {
		t.Errorf("got %s", kinds(w.history))
	}
}
