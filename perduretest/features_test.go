package perduretest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

func eventRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "two-events", func(ctx *perdure.OrchestrationContext, _ struct{}) ([]string, error) {
		var got []string
		for range 2 {
			s, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
			if err != nil {
				return nil, err
			}
			got = append(got, s)
			ctx.SetCustomStatus(map[string]int{"words": len(got)})
		}
		return got, nil
	})
	perdure.AddOrchestration(r, "approval",
		func(ctx *perdure.OrchestrationContext, limit time.Duration) (string, error) {
			approved, late := perdure.WaitForExternalEvent[string](ctx, "approved"), perdure.CreateTimer(ctx, limit)
			first, err := perdure.Select(ctx, approved, late)
			if err != nil || first == 1 {
				return "too late", err
			}
			return approved.Await(ctx)
		})
	return r
}

func start(t *testing.T, env *perduretest.Env, name string, input any) string {
	t.Helper()
	id, err := env.Client().Start(t.Context(), name, input)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func raise(t *testing.T, env *perduretest.Env, id, event string, data any, opts ...client.RaiseOption) {
	t.Helper()
	if err := env.Client().RaiseEvent(t.Context(), id, event, data, opts...); err != nil {
		t.Fatal(err)
	}
}

func TestRaiseEvent_sentEarlyOrTwice_isReceivedOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]perduretest.Option{"warm": {perduretest.WithCache()}, "cold": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, eventRegistry(), opts...)
			id := start(t, env, "two-events", nil)
			raise(t, env, id, "word", "early", client.WithEventID("e-1")) // before the first turn
			env.RunUntilIdle()
			env.Advance(10 * time.Minute) // longer than the deduplication interval of SQS
			raise(t, env, id, "word", "early", client.WithEventID("e-1"))
			raise(t, env, id, "other", "no wait for it")
			env.RunUntilIdle()
			s, err := env.Client().Status(t.Context(), id)
			if err != nil || s.Status != client.StatusRunning || string(s.CustomStatus) != `{"words":1}` {
				t.Fatalf("after a repeated event: got %s, custom status %s, %v", s.Status, s.CustomStatus, err)
			}
			raise(t, env, id, "word", "late")
			s, err = env.Client().Wait(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := client.Result[[]string](s); err != nil || !slices.Equal(got, []string{"early", "late"}) ||
				string(s.CustomStatus) != `{"words":2}` {
				t.Errorf("got %q, custom status %s, error %v", got, s.CustomStatus, err)
			}
		})
	}
}

func TestSelect_eventAndTimer_firstOneWins(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, eventRegistry())
	in, out := start(t, env, "approval", time.Hour), start(t, env, "approval", time.Hour)
	env.Advance(59 * time.Minute)
	raise(t, env, in, "approved", "by the boss")
	env.Advance(2 * time.Minute)
	for id, want := range map[string]string{in: "by the boss", out: "too late"} {
		s, err := env.Client().Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Result[string](s); err != nil || got != want {
			t.Errorf("got %q, error %v; want %q", got, err, want)
		}
	}
	if err := env.Client().RaiseEvent(t.Context(), in, "approved", "again"); !errors.Is(err, client.ErrEnded) {
		t.Errorf("event for an ended instance: got error %v", err)
	}
	if err := env.Client().RaiseEvent(t.Context(), "missing", "approved", nil); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("event for an unknown instance: got error %v", err)
	}
}

func TestTerminate_runningInstance_runsNoCode(t *testing.T) {
	t.Parallel()
	ran := false
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		_, err := perdure.WaitForExternalEvent[string](ctx, "never").Await(ctx)
		ran = true
		return "", err
	})
	env := perduretest.New(t, r)
	id := start(t, env, "waits", nil)
	env.RunUntilIdle()
	if err := env.Client().Terminate(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil || s.Status != client.StatusTerminated || s.Failure == nil || s.Failure.Message != "enough" || ran {
		t.Errorf("got %s, %+v, error %v; code ran: %v", s.Status, s.Failure, err, ran)
	}
	if err := env.Client().Terminate(t.Context(), id, ""); !errors.Is(err, client.ErrEnded) {
		t.Errorf("second terminate: got error %v", err)
	}
}

// A retry is a delayed message and needs no turn.
func TestRetry_failedAttempts_needNoTurn(t *testing.T) {
	t.Parallel()
	attempts := []int{}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "flaky", func(ctx context.Context, succeedsAt int) (int, error) {
		n := perdure.ActivityInfoFrom(ctx).Attempt
		attempts = append(attempts, n)
		if n < succeedsAt {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, at int) (int, error) {
		policy := perdure.RetryPolicy{
			MaxAttempts: 4, InitialInterval: 10 * time.Minute, BackoffCoefficient: 3, MaxInterval: 2 * time.Hour,
		}
		return perdure.CallActivityByName[int](ctx, "flaky", at, perdure.WithRetry(policy)).Await(ctx)
	})
	env := perduretest.New(t, r)
	began := env.Now()
	good := start(t, env, "tries", 3)
	s, err := env.Client().Wait(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 3 || !slices.Equal(attempts, []int{1, 2, 3}) {
		t.Errorf("got result %d, error %v, attempts %v", n, err, attempts)
	}
	// 10 minutes, then 30 minutes, which is longer than a queue can delay a message.
	if took := env.Now().Sub(began); took < 40*time.Minute || took > 40*time.Minute+2*time.Second {
		t.Errorf("got duration %v, want 40 minutes", took)
	}
	turns := 0
	for e, err := range env.Client().History(t.Context(), good) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == history.TurnStarted {
			turns++
		}
	}
	if turns != 2 {
		t.Errorf("got %d turns, want 2", turns)
	}
	bad := start(t, env, "tries", 9)
	if s, err := env.Client().Wait(t.Context(), bad); err != nil || s.Status != client.StatusFailed {
		t.Errorf("after the last attempt: got %s, error %v", s.Status, err)
	}
	if len(attempts) != 3+4 {
		t.Errorf("got %d attempts, want 4 more", len(attempts)-3)
	}
}

func TestGo_threeBranches_endInOrderAndSideEffectRunsOnce(t *testing.T) {
	t.Parallel()
	calls := 0
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "nap", nap)
	perdure.AddOrchestration(r, "branches", func(ctx *perdure.OrchestrationContext, _ struct{}) ([]int, error) {
		token := perdure.SideEffect(ctx, func() int { calls++; return 40 + calls })
		var order []int
		var branches []perdure.Awaitable
		for i := range 3 {
			branches = append(branches, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
				for range 2 {
					if _, err := perdure.CallActivity(ctx, nap, time.Duration(3-i)*time.Minute).Await(ctx); err != nil {
						return
					}
				}
				order = append(order, i)
			}))
		}
		err := perdure.WhenAll(ctx, branches...)
		return append(order, token), err
	})
	env := perduretest.New(t, r)
	s, err := env.Client().Wait(t.Context(), start(t, env, "branches", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[[]int](s); err != nil || !slices.Equal(got, []int{2, 1, 0, 41}) || calls != 1 {
		t.Errorf("got %v, error %v; the side effect ran %d times", got, err, calls)
	}
}

// A test cancels an instance, reads its status and purges it.
func TestCancelAndPurge_runningInstance_isCancelledThenPurged(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "stand-by", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "watch", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "stand-by", n).Await(ctx)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "watch", 1)
	env.Advance(time.Minute)
	if err := env.Client().Purge(t.Context(), id); !errors.Is(err, client.ErrNotEnded) {
		t.Errorf("purge of a running instance: got error %v", err)
	}
	if err := env.Client().Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Minute)
	found, err := client.Collect(env.Client().Cancellations(t.Context(), id, ""))
	if err != nil || len(found) != 2 || found[1].End != client.OutcomeStopped || found[1].SeenAt.IsZero() {
		t.Errorf("got %+v, error %v", found, err)
	}
	if err := env.Client().Purge(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client().Status(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after the purge: got error %v", err)
	}
}
