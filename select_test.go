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

func TestSelect_oneFutureIsDone_cancelsOthers(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		slow, timer, quick := perdure.CallActivity(ctx, inc, 1), perdure.CreateTimer(ctx, time.Hour),
			perdure.CallActivity(ctx, inc, 2)
		winner, err := perdure.Select(ctx, slow, timer, quick)
		if err != nil {
			return "", err
		}
		_, lost := slow.Await(ctx)
		_, expired := timer.Await(ctx)
		return fmt.Sprint(winner, ": ", lost, ", ", expired), nil
	})
	w.turn(history.Event{Kind: history.ActivityCompleted, SourceEventID: 5, Result: history.Payload("1")})
	if got := w.replayed().output(); got != `"2: cancelled (select_loser), cancelled (select_loser)"` {
		t.Error(got)
	}
	activity, timer := w.history[7], w.history[8]
	if activity.String() != "ActivityCancelRequested #8 of #3 (select_loser)" ||
		activity.RequestedBy != history.RequestedByOrchestration {
		t.Errorf("got %+v", activity)
	}
	if timer.String() != "TimerCancelled #9 of #4 (select_loser)" {
		t.Errorf("got %+v", timer)
	}
}

func TestSelect_severalFuturesAreDone_firstArgumentWins(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(*perdure.OrchestrationContext, ...perdure.Awaitable) (int, error){
		"Select": perdure.Select, "WhenAny": perdure.WhenAny,
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			a, b := perdure.CallActivity(ctx, inc, 1), perdure.CallActivity(ctx, inc, 2)
			if err := perdure.WhenAll(ctx, b, a); err != nil {
				return 0, err
			}
			return pick(ctx, a, b, a)
		})
		if got := w.run().replayed().output(); got != "0" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestWhenAny_oneFutureIsDone_othersContinue(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		a, b := perdure.CallActivity(ctx, inc, 1), perdure.CallActivity(ctx, inc, 2)
		if i, err := perdure.WhenAny(ctx, b, a); i != 1 || err != nil {
			return i, err
		}
		return b.Await(ctx)
	})
	if got := w.run().replayed().output(); got != "3" {
		t.Error(got)
	}
}

func TestSelect_noFutures_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		i, noneFirst := perdure.WhenAny(ctx)
		j, noneWon := perdure.Select(ctx)
		return fmt.Sprintf("%d %d, all: %v", i, j,
			errors.Join(perdure.WhenAll(ctx)) == nil && noneFirst != nil && noneWon != nil), nil
	})
	if got := w.replayed().output(); got != `"-1 -1, all: true"` {
		t.Error(got)
	}
}

func TestWhenAll_severalFailures_joinsErrorsInArgumentOrder(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	fail := func(_ context.Context, n int) (int, error) { return 0, fmt.Errorf("no %d", n) }
	perdure.AddActivity(r, "fail", fail)
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		one := perdure.CallActivityByName[int](ctx, "fail", 1)
		two := perdure.CallActivityByName[int](ctx, "fail", 2)
		err := perdure.WhenAll(ctx, two, perdure.CallActivity(ctx, inc, 1), one)
		if _, ok := errors.AsType[*perdure.ActivityError](err); !ok {
			return "", errors.New("no ActivityError")
		}
		return err.Error(), nil
	})
	w := newWorld(t, r).start("o", 1).run()
	if got, want := w.replayed().output(), `"activity \"fail\" (#4): no 2\nactivity \"fail\" (#3): no 1"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFutureCancel_runningActivity_settlesAtOnce(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		f.Cancel("no need")
		f.Cancel("again")
		_, err := f.Await(ctx)
		var ce *perdure.CancelledError
		if !errors.As(err, &ce) || !f.IsDone() || ce.Reason != perdure.ReasonRequested || ce.Message != "no need" {
			return "", err
		}
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		return "fine", nil
	})
	if got := w.run().replayed().output(); got != `"fine"` {
		t.Error(got)
	}
	cancel := w.history[3]
	if cancel.Kind != history.ActivityCancelRequested || cancel.SourceEventID != 3 || cancel.Reason != "requested" ||
		cancel.Message != "no need" {
		t.Errorf("got %+v", cancel)
	}
}

func TestFutureCancel_errorReturned_failsInstance(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		f.Cancel("no need")
		return f.Await(ctx)
	})
	f := w.replayed().failure()
	if f.Type != history.TypeCancelled || f.Reason != "requested" || f.Message != "no need" {
		t.Errorf("got %+v", f)
	}
}

func TestFutureCancel_doneFuture_changesNothing(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivity(ctx, inc, 1)
		if _, err := perdure.WhenAny(ctx, f); err != nil {
			return 0, err
		}
		f.Cancel("too late")
		return f.Await(ctx)
	})
	if got := w.run().replayed().output(); got != "2" || strings.Contains(fmt.Sprint(w.history), "Cancel") {
		t.Error(got)
	}
}
