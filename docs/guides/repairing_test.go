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

var errNoRates = errors.New("the service of rates is down")

// pay waits for two approvals, and pays then.
func pay(ctx *perdure.OrchestrationContext, amount int) (int, error) {
	for range 2 {
		if _, err := perdure.WaitForExternalEvent[string](ctx, "approved").Await(ctx); err != nil {
			return 0, err
		}
	}
	return perdure.CallActivityByName[int](ctx, "transfer", amount).Await(ctx)
}

// hold keeps a payment from going on, whatever is approved meanwhile, until the books are looked at.
func hold(ctx context.Context, hub *client.Client, payment string, look func() error) error {
	if err := hub.Pause(ctx, payment, "the books are looked at"); err != nil {
		return err
	}
	if err := look(); err != nil {
		return err // it stays paused: somebody decides
	}
	if err := hub.Resume(ctx, payment, "the books are right"); err != nil && !errors.Is(err, client.ErrNotPaused) {
		return err
	}
	return nil
}

// payAgain pays what failed. Called twice, it starts one payment.
func payAgain(ctx context.Context, hub *client.Client, failed string) (payment string, err error) {
	payment, err = hub.Restart(ctx, failed)
	if errors.Is(err, client.ErrNotTerminal) {
		return failed, nil // it is under way
	}
	return payment, err
}

// payInstead pays another amount, whatever has become of the payment so far.
func payInstead(ctx context.Context, hub *client.Client, payment string, amount int) error {
	_, err := hub.Start(ctx, "pay", amount, client.WithInstanceID(payment), client.IfExists(client.Replace), client.WithIdempotencyKey(fmt.Sprint(payment, " of ", amount)))
	return err
}

// forget deletes a trip that is over, with all that was below it.
func forget(ctx context.Context, hub *client.Client, trip string) error {
	err := hub.Purge(ctx, trip, client.WithChildren())
	if errors.Is(err, client.ErrNotFound) {
		return nil // it is forgotten
	}
	return err
}

// payFrom goes on with what failed from the last outcome that its code received: what was paid is not paid again.
func payFrom(ctx context.Context, hub *client.Client, failed string) (payment string, err error) {
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

func paying(t *testing.T, transfer func(context.Context, int) (int, error)) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "transfer", transfer)
	perdure.AddOrchestration(r, "pay", pay)
	return perduretest.New(t, r)
}

func approve(t *testing.T, env *perduretest.Env, payment string) {
	t.Helper()
	if err := env.Client().Raise(t.Context(), payment, "approved", "yes"); err != nil {
		t.Fatal(err)
	}
}

func TestAPaymentThatIsHeldIsMadeAfterwards(t *testing.T) {
	t.Parallel()
	transferred := 0
	env := paying(t, func(_ context.Context, amount int) (int, error) { transferred += amount; return transferred, nil })
	payment, err := env.Client().Start(t.Context(), "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)

	err = hold(t.Context(), env.Client(), payment, func() error {
		approve(t, env, payment)
		approve(t, env, payment)
		env.Advance(time.Hour)
		if s, err := env.Client().Status(t.Context(), payment); err != nil || s.Status != client.StatusPaused || transferred != 0 {
			t.Errorf("meanwhile it is %s, %d are transferred, %v", s.Status, transferred, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := env.Client().Wait(t.Context(), payment); err != nil || s.Status != client.StatusCompleted || transferred != 7 {
		t.Errorf("it is %s, %d are transferred, %v", s.Status, transferred, err)
	}
}

func TestAPaymentThatFailedIsMadeOnceMore(t *testing.T) {
	t.Parallel()
	down := true
	env := paying(t, func(_ context.Context, amount int) (int, error) {
		if down {
			return 0, errNoRates
		}
		return amount, nil
	})
	failed, err := env.Client().Start(t.Context(), "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := payAgain(t.Context(), env.Client(), failed); err != nil || again != failed {
		t.Errorf("under way: %s, %v", again, err)
	}
	approve(t, env, failed)
	approve(t, env, failed)
	if s, err := env.Client().Wait(t.Context(), failed); err != nil || s.Status != client.StatusFailed {
		t.Fatalf("it is %s, %v", s.Status, err)
	}

	down = false
	payment, err := payAgain(t.Context(), env.Client(), failed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := payAgain(t.Context(), env.Client(), failed); err != nil || again != payment {
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

func TestAPaymentIsReplaced(t *testing.T) {
	t.Parallel()
	env := paying(t, func(_ context.Context, amount int) (int, error) { return amount, nil })
	if _, err := env.Client().Start(t.Context(), "pay", 7, client.WithInstanceID("payment")); err != nil {
		t.Fatal(err)
	}
	approve(t, env, "payment") // of the wrong amount
	env.Advance(time.Second)
	for range 2 {
		if err := payInstead(t.Context(), env.Client(), "payment", 8); err != nil {
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

func TestATripIsForgotten(t *testing.T) {
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
		if err := forget(t.Context(), env.Client(), trip); err != nil {
			t.Fatal(err)
		}
	}
	for s, err := range env.Client().List(t.Context(), client.Query{}) {
		t.Errorf("%s is there, %v", s.InstanceID, err)
	}
}

func TestAPaymentGoesOnBehindWhatWasPaid(t *testing.T) {
	t.Parallel()
	transferred, mended := 0, false
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "transfer", func(_ context.Context, amount int) (int, error) { transferred += amount; return transferred, nil })
	perdure.AddOrchestration(r, "pay", func(ctx *perdure.OrchestrationContext, amount int) (int, error) {
		paid, err := pay(ctx, amount)
		if err == nil && !mended {
			err = errors.New("the ledger has no such account")
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
		t.Fatalf("it is %s, %v", s.Status, err)
	}

	mended = true
	payment, err := payFrom(t.Context(), env.Client(), failed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), payment)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 7 || transferred != 7 {
		t.Errorf("%d, %d were transferred, %v", n, transferred, err)
	}
}
