package perdure_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestCallActivity_chain_passesEachResultToNextCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, benchRegistry()).start("chain", 5).run()
	if got := w.replayed().output(); got != "5" {
		t.Error(got)
	}
}

func TestWhenAll_fanOutOfActivities_collectsAllResults(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (sum int, err error) {
		var fs []*perdure.Future[int]
		for i := range 10 {
			fs = append(fs, perdure.CallActivity(ctx, inc, i))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
		for _, f := range fs {
			n, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
	if got := w.run().replayed().output(); got != "55" {
		t.Error(got)
	}
}

func TestActivityRef_callByReferenceOrName_runsSameActivity(t *testing.T) {
	t.Parallel()
	ref := perdure.DefineActivity[string, string]("upper", perdure.OnQueue("text"),
		perdure.WithCancelPollInterval(time.Minute))
	r := perdure.NewRegistry()
	ref.Register(r, func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil })
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, s string) (string, error) {
		a, err := ref.Call(ctx, s).Await(ctx)
		if err != nil {
			return "", err
		}
		b, err := perdure.CallActivityByName[string](ctx, "upper", "b").Await(ctx)
		return a + b, err
	})
	w := newWorld(t, r).start("o", "a").run()
	if got := w.replayed().output(); got != `"AB"` {
		t.Error(got)
	}
	if ev := w.history[2]; ev.Queue != "text" || string(ev.Input) != `"a"` {
		t.Errorf("%+v", ev)
	}
	if a, ok := codeOf(r).Activity("upper"); !ok || a.CancelPollInterval != time.Minute {
		t.Errorf("the options of the reference: %+v", a)
	}
}

func TestWithCancelPollInterval_outOfRange_panics(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]any{
		0:                       "perdure: WithCancelPollInterval: 0s is out of range; use 10ms to 12h0m0s",
		10*time.Millisecond - 1: "perdure: WithCancelPollInterval: 9.999999ms is out of range; use 10ms to 12h0m0s",
		12*time.Hour +
			1: "perdure: WithCancelPollInterval: 12h0m0.000000001s is out of range; use 10ms to 12h0m0s",
		10 * time.Millisecond: nil,
		12 * time.Hour:        nil,
	} {
		func() {
			defer func() {
				if r := recover(); r != want {
					t.Errorf("%v, want %v", r, want)
				}
			}()
			perdure.WithCancelPollInterval(d)
		}()
	}
}

func TestWithStartToCloseTimeout_fractionOfMillisecond_isRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{time.Minute: 60_000, 1500 * time.Microsecond: 2, 0: 1, -time.Hour: 1} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivity(ctx, inc, 1, perdure.WithStartToCloseTimeout(d)).Await(ctx)
		})
		if got := w.history[2].StartToCloseMs; got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivity(ctx, inc, 1).Await(ctx)
	})
	if got := w.history[2].StartToCloseMs; got != 0 {
		t.Errorf("no limit is %d ms", got)
	}
}

func TestCreateTimer_nanosecondToYears_firesWhenDue(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	for _, d := range []time.Duration{time.Nanosecond, time.Hour, years} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (time.Time, error) {
			due, err := perdure.CreateTimer(ctx, d).Await(ctx)
			if ctx.Now().Before(due) {
				t.Errorf("%v: early, at %v", d, ctx.Now())
			}
			return due, err
		})
		due := epoch.Add(d)
		if got := w.history[2].FireAt; got == nil || !got.Equal(due) {
			t.Errorf("%v is due at %v", d, got)
		}
		b, err := json.Marshal(due)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.run().replayed().output(); got != string(b) {
			t.Errorf("%v: %s, want %s", d, got, b)
		}
	}
}

func TestCreateTimer_zeroOrNegative_isDoneAtOnce(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (bool, error) {
		zero, negative := perdure.CreateTimer(ctx, 0), perdure.CreateTimer(ctx, -time.Hour)
		at, err := negative.Await(ctx)
		return zero.IsDone() && at.Equal(ctx.Now()), errors.Join(err, perdure.Sleep(ctx, 0), perdure.Sleep(ctx, -1<<63))
	})
	if got := w.replayed().output(); got != "true" || len(w.history) != 3 {
		t.Errorf("%s after %d events", got, len(w.history))
	}
}

func TestOrchestration_futuresNotAwaited_completes(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		perdure.CallActivity(ctx, inc, 1)
		perdure.CreateTimer(ctx, time.Hour)
		return "done", nil
	})
	if got := w.replayed().output(); got != `"done"` {
		t.Error(got)
	}
}

func TestFuture_awaitedTwice_returnsSameResult(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		if f.IsDone() {
			return nil, errors.New("done before it began")
		}
		a, err := f.Await(ctx)
		b, again := f.Await(ctx)
		return []int{a, b}, errors.Join(err, again)
	})
	if got := w.run().replayed().output(); got != "[2,2]" {
		t.Error(got)
	}
}

func TestOrchestrationContext_firstTurn_hasIDsTimeAndLogger(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		if !ctx.Now().Equal(epoch) || ctx.Now().Location() != time.UTC || ctx.IsReplaying() || ctx.Err() != nil {
			t.Errorf("now %v, replaying %v, err %v", ctx.Now(), ctx.IsReplaying(), ctx.Err())
		}
		if ctx.Rand().IntN(10) > 9 || len(ctx.NewUUID()) != 36 || ctx.Logger() == nil {
			t.Error("no randomness or no log")
		}
		return ctx.InstanceID() + " " + ctx.ExecutionID(), nil
	})
	if got := w.output(); got != `"order-17 01JEXECUTION"` {
		t.Error(got)
	}
}

// An HTTP request made with an orchestration's context must not compile.
func TestOrchestrationContext_doesNotImplementContext(t *testing.T) {
	t.Parallel()
	if reflect.TypeFor[*perdure.OrchestrationContext]().Implements(reflect.TypeFor[context.Context]()) {
		t.Error("it can be passed to what blocks")
	}
}

func TestNondeterminismError_replayDiverges_isReturned(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivity(ctx, inc, 1).Await(ctx)
	})
	w.history[2].Kind = history.TimerCreated
	err := w.open().Replay(w.history)
	var e *perdure.NondeterminismError
	if !errors.As(err, &e) || e.EventID != 3 ||
		!strings.Contains(err.Error(), `history has TimerCreated "inc", the code requested ActivityScheduled "inc"`) {
		t.Error(err)
	}
}
