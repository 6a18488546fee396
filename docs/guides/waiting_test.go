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

// openShop starts a shop and reports whether its code is running within the timeout.
func openShop(ctx context.Context, hub *client.Client, shop string, timeout time.Duration) (isOpen bool, err error) {
	if _, err := hub.Start(ctx, "shop", nil, client.WithInstanceID(shop), client.WithIdempotencyKey(shop)); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := hub.WaitForStart(ctx, shop)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil // s.Status is Pending
	}
	return s.Status == client.StatusRunning, err
}

func TestWaitForStart_delayedOrUnknownInstance_waitsOrFails(t *testing.T) {
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
	s, err := hub.WaitForStart(t.Context(), id)
	late := env.Now().Sub(opens)
	if err != nil || s.Status != client.StatusRunning || late < 0 || late > time.Minute {
		t.Errorf("at %v: %s, %v", env.Now(), s.Status, err)
	}
	if _, err := hub.WaitForStart(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("missing instance: %v", err)
	}
}

// Job is the state of a job in another service.
type Job struct {
	ID     string
	State  string
	Checks int
}

func (j Job) finished() bool { return j.State == "done" || j.State == "failed" }

// export polls every ten seconds at first, then less often, for at most two hours.
func export(ctx *perdure.OrchestrationContext, id string) (string, error) {
	j, err := perdure.WaitForCondition(ctx, Job{ID: id}, func(ctx *perdure.OrchestrationContext, j Job) (Job, error) {
		return perdure.CallActivityByName[Job](ctx, "describe", j).Await(ctx)
	}, Job.finished, perdure.PollPolicy{
		InitialInterval: 10 * time.Second, BackoffCoefficient: 1.5, MaxInterval: 5 * time.Minute, Jitter: 0.2,
		Timeout: 2 * time.Hour,
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out while " + j.State, nil
	}
	return j.State, err
}

// monitor polls every minute without a limit. It continues as new after 500 checks.
func monitor(ctx *perdure.OrchestrationContext, j Job) (string, error) {
	j, err := perdure.WaitForCondition(ctx, j, func(ctx *perdure.OrchestrationContext, j Job) (Job, error) {
		return perdure.CallActivityByName[Job](ctx, "describe", j).Await(ctx)
	}, Job.finished, perdure.PollPolicy{InitialInterval: time.Minute, MaxAttempts: 500})
	if _, notMet := errors.AsType[*perdure.ConditionNotMetError](err); notMet {
		return perdure.ContinueAsNew[string](ctx, j)
	}
	return j.State, err
}

func TestWaitForCondition_pollPolicies_endAsConfigured(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "export", export)
	perdure.AddOrchestration(r, "monitor", monitor)
	perdure.AddActivity(r, "describe", func(_ context.Context, j Job) (Job, error) {
		j.Checks++
		switch j.State = "running"; {
		case j.ID == "short" && j.Checks == 6, j.Checks == 1100:
			j.State = "done"
		}
		return j, nil
	}, perdure.Inline())
	env := perduretest.New(t, r, perduretest.WithCache())
	for _, c := range []struct {
		id, want  string
		took      time.Duration
		precision time.Duration
	}{
		{"short", "done", 132 * time.Second, time.Second},
		{"long", "timed out while running", 2 * time.Hour, time.Minute},
	} {
		began := env.Now()
		instance, err := env.Client().Start(t.Context(), "export", c.id)
		if err != nil {
			t.Fatal(err)
		}
		got := waitFor[string](t, env, instance)
		if took := env.Now().Sub(began); got != c.want || took.Round(c.precision) != c.took {
			t.Errorf("%s: %s after %v", c.id, got, took)
		}
	}
	instance, err := env.Client().Start(t.Context(), "monitor", Job{ID: "endless"})
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

// settle waits for a payment.
func settle(ctx *perdure.OrchestrationContext, invoice string) (string, error) {
	paid := perdure.WaitForExternalEvent[int](ctx, "paid")
	window := perdure.CreateTimer(ctx, 14*24*time.Hour, perdure.WithTimerName("payment window"))
	winner, err := perdure.Select(ctx, paid, window)
	if err != nil || winner == 0 {
		return "paid", err
	}
	if err := perdure.Sleep(ctx, 72*time.Hour, perdure.WithTimerName("reminder period")); err != nil {
		return "", err
	}
	return "sent to collections", nil
}

func TestTimerName_pendingTimer_isListed(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "settle", settle)
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "settle", "invoice-7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"payment window", "reminder period"} {
		env.Advance(time.Hour)
		p, err := env.Client().Pending(t.Context(), id, "", 0)
		isTimer := func(x client.PendingItem) bool { return x.Kind == client.PendingTimer && x.Name == want }
		if err != nil || !slices.ContainsFunc(p.Items, isTimer) {
			t.Errorf("it waits for %+v, %v", p.Items, err)
		}
		env.Advance(14 * 24 * time.Hour)
	}
	if got := waitFor[string](t, env, id); got != "sent to collections" {
		t.Error(got)
	}
}
