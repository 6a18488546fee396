package guides_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// openShop starts a shop, and says whether it is open within the limit.
func openShop(ctx context.Context, hub *client.Client, shop string, limit time.Duration) (isOpen bool, err error) {
	if _, err := hub.Start(ctx, "shop", nil, client.WithInstanceID(shop), client.WithIdempotencyKey(shop)); err != nil {
		return false, err
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	s, err := hub.WaitForStart(ctx, shop)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil // nobody runs it yet: s.Status is Pending
	}
	return s.Status == client.StatusRunning, err
}

func TestTheGuideToWaitingFromOutside(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "shop", func(ctx *perdure.OrchestrationContext, _ any) (string, error) {
		return "closed", perdure.Sleep(ctx, 8*time.Hour)
	})
	env := perduretest.New(t, r)
	hub := env.Client()
	if isOpen, err := openShop(t.Context(), hub, "corner", time.Minute); err != nil || !isOpen {
		t.Errorf("open: %t, %v", isOpen, err)
	}

	opens := env.Now().Add(12 * time.Hour)
	id, err := hub.Start(t.Context(), "shop", nil, client.WithDelay(12*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := hub.WaitForStart(t.Context(), id); err != nil || s.Status != client.StatusRunning || env.Now().Before(opens) || env.Now().After(opens.Add(time.Minute)) {
		t.Errorf("at %v: %s, %v", env.Now(), s.Status, err)
	}
	if _, err := hub.WaitForStart(t.Context(), "nobody"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

// job is what another service says of a job of ours.
type job struct {
	ID    string
	State string
	Asked int
}

func (j job) isOver() bool { return j.State == "done" || j.State == "failed" }

// export asks every ten seconds at first, then less often, for two hours.
func export(ctx *perdure.OrchestrationContext, id string) (string, error) {
	j, err := perdure.WaitForCondition(ctx, job{ID: id}, func(ctx *perdure.OrchestrationContext, j job) (job, error) {
		return perdure.CallActivityByName[job](ctx, "describe", j).Await(ctx)
	}, job.isOver, perdure.PollPolicy{Interval: 10 * time.Second, Coefficient: 1.5, MaxInterval: 5 * time.Minute, Jitter: 0.2, Timeout: 2 * time.Hour})
	if errors.Is(err, context.DeadlineExceeded) {
		return "given up, it was " + j.State, nil
	}
	return j.State, err
}

// watch asks every minute for as long as it takes, in executions of five hundred checks.
func watch(ctx *perdure.OrchestrationContext, j job) (string, error) {
	j, err := perdure.WaitForCondition(ctx, j, func(ctx *perdure.OrchestrationContext, j job) (job, error) {
		return perdure.CallActivityByName[job](ctx, "describe", j).Await(ctx)
	}, job.isOver, perdure.PollPolicy{Interval: time.Minute, MaxAttempts: 500})
	if _, enough := errors.AsType[*perdure.ConditionNotMetError](err); enough {
		return perdure.ContinueAsNew[string](ctx, j)
	}
	return j.State, err
}

func TestTheGuideToWaitingForAState(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "export", export)
	perdure.AddOrchestration(r, "watch", watch)
	perdure.AddActivity(r, "describe", func(_ context.Context, j job) (job, error) {
		j.Asked++
		switch j.State = "running"; {
		case j.ID == "short" && j.Asked == 6, j.Asked == 1100:
			j.State = "done"
		}
		return j, nil
	}, perdure.Inline())
	env := perduretest.New(t, r, perduretest.WithCache())
	for id, want := range map[string]string{"short": "done", "long": "given up, it was running"} {
		began := env.Now()
		instance, err := env.Client().Start(t.Context(), "export", id)
		if err != nil {
			t.Fatal(err)
		}
		got := waitFor[string](t, env, instance)
		if took := env.Now().Sub(began); got != want || id == "long" && took.Round(time.Minute) != 2*time.Hour || id == "short" && took.Round(time.Second) != 132*time.Second {
			t.Errorf("%s: %s after %v", id, got, took)
		}
	}
	instance, err := env.Client().Start(t.Context(), "watch", job{ID: "endless"})
	if err != nil {
		t.Fatal(err)
	}
	if got := waitFor[string](t, env, instance); got != "done" {
		t.Error(got)
	}
	s, err := env.Client().Status(t.Context(), instance)
	if err != nil || s.ExecutionNumber != 3 {
		t.Errorf("in execution %d, %v", s.ExecutionNumber, err)
	}
}

// settle waits for a payment, and says so.
func settle(ctx *perdure.OrchestrationContext, invoice string) (string, error) {
	paid := perdure.WaitForExternalEvent[int](ctx, "paid")
	window := perdure.CreateTimer(ctx, 14*24*time.Hour, perdure.WithName("payment window"))
	first, err := perdure.Select(ctx, paid, window)
	if err != nil || first == 0 {
		return "paid", err
	}
	if err := perdure.Sleep(ctx, 72*time.Hour, perdure.WithName("grace after the reminder")); err != nil {
		return "", err
	}
	return "handed on", nil
}

func TestTheGuideToNamesOfTimers(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "settle", settle)
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "settle", "invoice-7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"payment window", "grace after the reminder"} {
		env.Advance(time.Hour)
		p, err := env.Client().Pending(t.Context(), id, "", 0)
		if err != nil || !slices.ContainsFunc(p.Items, func(x client.PendingItem) bool { return x.What == client.PendingTimer && x.Name == want }) {
			t.Errorf("it waits for %+v, %v", p.Items, err)
		}
		env.Advance(14 * 24 * time.Hour)
	}
	if got := waitFor[string](t, env, id); got != "handed on" {
		t.Error(got)
	}
}
