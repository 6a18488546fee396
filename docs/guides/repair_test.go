package guides_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

var errUnavailable = errors.New("the rate service is unavailable")

// pay transfers an amount after two approvals.
func pay(ctx *perdure.OrchestrationContext, amount int) (int, error) {
	for range 2 {
		if _, err := perdure.WaitForExternalEvent[string](ctx, "approved").Await(ctx); err != nil {
			return 0, err
		}
	}
	return perdure.CallActivityByName[int](ctx, "transfer", amount).Await(ctx)
}

// auditPayment pauses a payment during an audit.
func auditPayment(ctx context.Context, hub *client.Client, payment string, audit func() error) error {
	if err := hub.Pause(ctx, payment, "audit"); err != nil {
		return err
	}
	if err := audit(); err != nil {
		return err // the payment stays paused
	}
	if err := hub.Resume(ctx, payment, "audit passed"); err != nil && !errors.Is(err, client.ErrNotPaused) {
		return err
	}
	return nil
}

// restartPayment restarts a failed payment. A repeated call returns the same new instance.
func restartPayment(ctx context.Context, hub *client.Client, failed string) (payment string, err error) {
	payment, err = hub.Restart(ctx, failed)
	if errors.Is(err, client.ErrNotEnded) {
		return failed, nil // still running
	}
	return payment, err
}

// replacePayment replaces a payment with one of another amount.
func replacePayment(ctx context.Context, hub *client.Client, payment string, amount int) error {
	_, err := hub.Start(ctx, "pay", amount,
		client.WithInstanceID(payment),
		client.IfExists(client.Replace),
		client.WithIdempotencyKey(fmt.Sprint(payment, " of ", amount)))
	return err
}

// purgeTrip deletes an ended trip and its sub-orchestrations.
func purgeTrip(ctx context.Context, hub *client.Client, trip string) error {
	err := hub.Purge(ctx, trip, client.WithChildren())
	if errors.Is(err, client.ErrNotFound) {
		return nil // purged before
	}
	return err
}

// continuePayment restarts a failed payment after its last completed activity, so that the activity does not run again.
func continuePayment(ctx context.Context, hub *client.Client, failed string) (payment string, err error) {
	var from int64
	for e, err := range hub.History(ctx, failed) {
		if err != nil {
			return "", err
		}
		if e.Kind == history.ActivityCompleted {
			from = e.ID
		}
	}
	return hub.Restart(ctx, failed, client.FromEvent(from))
}

func newPaymentEnv(t *testing.T, transfer func(context.Context, int) (int, error)) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "transfer", transfer)
	perdure.AddOrchestration(r, "pay", pay)
	return perduretest.New(t, r)
}

func approve(t *testing.T, env *perduretest.Env, payment string) {
	t.Helper()
	if err := env.Client().RaiseEvent(t.Context(), payment, "approved", "yes"); err != nil {
		t.Fatal(err)
	}
}

func TestPause_eventsWhilePaused_handledAfterResume(t *testing.T) {
	t.Parallel()
	transferred := 0
	env := newPaymentEnv(t, func(_ context.Context, amount int) (int, error) {
		transferred += amount
		return transferred, nil
	})
	payment, err := env.Client().Start(t.Context(), "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)

	err = auditPayment(t.Context(), env.Client(), payment, func() error {
		approve(t, env, payment)
		approve(t, env, payment)
		env.Advance(time.Hour)
		s, err := env.Client().Status(t.Context(), payment)
		if err != nil || s.Status != client.StatusPaused || transferred != 0 {
			t.Errorf("while paused: %s, %d transferred, %v", s.Status, transferred, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), payment)
	if err != nil || s.Status != client.StatusCompleted || transferred != 7 {
		t.Errorf("%s, %d transferred, %v", s.Status, transferred, err)
	}
}

func TestRestart_repeatedCall_startsOneInstance(t *testing.T) {
	t.Parallel()
	down := true
	env := newPaymentEnv(t, func(_ context.Context, amount int) (int, error) {
		if down {
			return 0, errUnavailable
		}
		return amount, nil
	})
	failed, err := env.Client().Start(t.Context(), "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := restartPayment(t.Context(), env.Client(), failed); err != nil || again != failed {
		t.Errorf("running: %s, %v", again, err)
	}
	approve(t, env, failed)
	approve(t, env, failed)
	if s, err := env.Client().Wait(t.Context(), failed); err != nil || s.Status != client.StatusFailed {
		t.Fatalf("%s, %v", s.Status, err)
	}

	down = false
	payment, err := restartPayment(t.Context(), env.Client(), failed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := restartPayment(t.Context(), env.Client(), failed); err != nil || again != payment {
		t.Errorf("again: %s, want %s, %v", again, payment, err)
	}
	approve(t, env, payment)
	approve(t, env, payment)
	s, err := env.Client().Wait(t.Context(), payment)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestReplace_runningInstance_startsNewOne(t *testing.T) {
	t.Parallel()
	env := newPaymentEnv(t, func(_ context.Context, amount int) (int, error) { return amount, nil })
	if _, err := env.Client().Start(t.Context(), "pay", 7, client.WithInstanceID("payment")); err != nil {
		t.Fatal(err)
	}
	approve(t, env, "payment") // for the wrong amount
	env.Advance(time.Second)
	for range 2 {
		if err := replacePayment(t.Context(), env.Client(), "payment", 8); err != nil {
			t.Fatal(err)
		}
		approve(t, env, "payment")
	}
	s, err := env.Client().Wait(t.Context(), "payment")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 8 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestPurge_withChildren_deletesAll(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "trip", func(ctx *perdure.OrchestrationContext, legs int) (int, error) {
		for leg := range legs {
			id := perdure.WithInstanceID(fmt.Sprint(ctx.InstanceID(), "/", leg))
			if _, err := perdure.CallSubOrchestrationByName[int](ctx, "trip", legs-1, id).Await(ctx); err != nil {
				return 0, err
			}
		}
		return legs, nil
	})
	env := perduretest.New(t, r)
	trip, err := env.Client().Start(t.Context(), "trip", 2, client.WithInstanceID("trip"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client().Wait(t.Context(), trip); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)
	for range 2 {
		if err := purgeTrip(t.Context(), env.Client(), trip); err != nil {
			t.Fatal(err)
		}
	}
	for s, err := range env.Client().List(t.Context(), client.ListQuery{}) {
		t.Errorf("%s was not deleted, %v", s.InstanceID, err)
	}
}

func TestRestartFromEvent_completedActivity_doesNotRunAgain(t *testing.T) {
	t.Parallel()
	transferred, fixed := 0, false
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "transfer", func(_ context.Context, amount int) (int, error) {
		transferred += amount
		return transferred, nil
	})
	perdure.AddOrchestration(r, "pay", func(ctx *perdure.OrchestrationContext, amount int) (int, error) {
		paid, err := pay(ctx, amount)
		if err == nil && !fixed {
			err = errors.New("unknown account")
		}
		return paid, err
	})
	env := perduretest.New(t, r)
	failed, err := env.Client().Start(t.Context(), "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	approve(t, env, failed)
	approve(t, env, failed)
	if s, err := env.Client().Wait(t.Context(), failed); err != nil || s.Status != client.StatusFailed {
		t.Fatalf("%s, %v", s.Status, err)
	}

	fixed = true
	payment, err := continuePayment(t.Context(), env.Client(), failed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), payment)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 7 || transferred != 7 {
		t.Errorf("%d, %d transferred, %v", n, transferred, err)
	}
}

func TestRestart_startRequestedNoVersion_runsHighest(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	startParcel(t, env, "old")
	if err := env.Client().Terminate(t.Context(), "old", "restart it"); err != nil {
		t.Fatal(err)
	}
	if s, err := env.Client().Wait(t.Context(), "old"); err != nil || s.Version != "0" {
		t.Fatalf("version %q, %v", s.Version, err)
	}
	r := registryOf(parcelV0)
	perdure.AddOrchestration(r, "parcel", parcelV1, perdure.WithVersion("1"))
	env.Deploy(r)
	restarted, err := env.Client().Restart(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	if s, err := env.Client().Status(t.Context(), restarted); err != nil || s.Version != "1" {
		t.Errorf("version %q, %v", s.Version, err)
	}
}
