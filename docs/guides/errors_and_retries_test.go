package guides_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// chargeWithin retries a charge for at most an hour.
func chargeWithin(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	return perdure.CallActivityByName[string](ctx, "charge", cents,
		perdure.WithRetry(perdure.RetryPolicy{
			InitialInterval:        5 * time.Second,
			NonRetryableErrorTypes: []string{"DeclinedError"},
		}),
		perdure.WithStartToCloseTimeout(30*time.Second),
		perdure.WithScheduleToCloseTimeout(time.Hour),
	).Await(ctx)
}

type DeclinedError struct{ Message string }

func (e *DeclinedError) Error() string { return "card declined: " + e.Message }

// Decline has the details of a DeclinedError.
type Decline struct {
	Code           int
	AvailableCents int
}

// Charge declines amounts over 300 cents.
func Charge(_ context.Context, cents int) (string, error) {
	const available = 300
	if cents > available {
		err := perdure.NonRetryable(&DeclinedError{Message: "insufficient funds"})
		return "", perdure.WithErrorDetails(err, Decline{Code: 51, AvailableCents: available})
	}
	return fmt.Sprintf("charged %d", cents), nil
}

// explain returns why a charge failed, or an empty string.
func explain(err error) string {
	if timeout, ok := errors.AsType[*perdure.TimeoutError](err); ok {
		return timeout.Message // the only field; it names the activity and the timeout
	}
	if c, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return string(c.Reason) + ": " + c.Message
	}
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok && failed.Type == "DeclinedError" {
		return "declined: " + failed.Message
	}
	return ""
}

// chargeOrExplain returns the charge, or why it failed.
func chargeOrExplain(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	limit := perdure.WithStartToCloseTimeout(30 * time.Second)
	paid, err := perdure.CallActivityByName[string](ctx, "charge", cents, limit).Await(ctx)
	return paid + explain(err), nil
}

// awaitPayment fails if an order is not paid within two days.
func awaitPayment(ctx *perdure.OrchestrationContext, order string) (string, error) {
	limited, cancel := perdure.WithTimeout(ctx, 48*time.Hour)
	defer cancel()
	payment, err := perdure.WaitForExternalEvent[string](limited, "paid").Await(limited)
	if c, cancelled := errors.AsType[*perdure.CancelledError](err); cancelled && c.Reason == perdure.ReasonTimeout {
		return "", fmt.Errorf("order %s was not paid in time: %w", order, err)
	}
	return payment, err
}

// payAvailable charges the available amount if the card declines the full amount.
func payAvailable(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	paid, err := perdure.CallActivityByName[string](ctx, "charge", cents).Await(ctx)
	if d, noDetails := perdure.ErrorDetails[Decline](err); noDetails == nil && d.Code == 51 &&
		2*d.AvailableCents > cents {
		return perdure.CallActivityByName[string](ctx, "charge", d.AvailableCents).Await(ctx)
	}
	return paid, err
}

// payOnce never charges a card twice.
func payOnce(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	paid, err := perdure.CallActivityByName[string](ctx, "charge", cents, perdure.AtMostOnce()).Await(ctx)
	if _, interrupted := errors.AsType[*perdure.InterruptedError](err); interrupted {
		return "", fmt.Errorf("check whether %d cents were charged before you retry: %w", cents, err)
	}
	return paid, err
}

func availableCents(ctx context.Context, hub *client.Client, id string) (cents int, err error) {
	s, err := hub.Wait(ctx, id)
	if err != nil {
		return 0, err
	}
	_, failure := client.Result[string](s)
	d, err := perdure.ErrorDetails[Decline](failure)
	return d.AvailableCents, err
}

func TestPayAvailable_cardDeclined_readsErrorDetails(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pay-available", payAvailable)
	perdure.AddActivity(r, "charge", Charge)
	env := perduretest.New(t, r)
	hub := env.Client()
	for cents, want := range map[int]string{200: "charged 200", 500: "charged 300"} {
		id, err := hub.Start(t.Context(), "pay-available", cents)
		if err != nil {
			t.Fatal(err)
		}
		if got := waitFor[string](t, env, id); got != want {
			t.Errorf("%d: %s", cents, got)
		}
	}
	id, err := hub.Start(t.Context(), "pay-available", 700)
	if err != nil {
		t.Fatal(err)
	}
	if available, err := availableCents(t.Context(), hub, id); available != 300 || err != nil {
		t.Errorf("%d cents are available, %v", available, err)
	}
}

func TestChargeWithin_failures_retriesUnlessDeclined(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "charge-within", chargeWithin)
	perdure.AddActivity(r, "charge", Charge)
	env := perduretest.New(t, r)
	env.Stub("charge").Fails(2, errors.New("timeout")).Fails(1, &DeclinedError{"stolen card"}).Returns("charged")
	id, err := env.Client().Start(t.Context(), "charge-within", 70)
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	calls := env.Calls("charge")
	if err != nil || s.Status != client.StatusFailed || len(calls) != 3 || calls[1].StartedAt != 5*time.Second {
		t.Errorf("%s after %+v, %v", s.Status, calls, err)
	}
}

func TestExplain_eachCause_isFound(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "charge-or-explain", chargeOrExplain)
	perdure.AddActivity(r, "charge", Charge)
	for want, prepare := range map[string]func(*perduretest.Env){
		"charged 70": func(*perduretest.Env) {},
		"declined: card declined: lost": func(env *perduretest.Env) {
			env.Stub("charge").Fails(1, &DeclinedError{"lost"})
		},
		`activity "charge": start-to-close timeout of 30s expired`: func(env *perduretest.Env) {
			env.Stub("charge").Takes(time.Hour).Returns("late")
		},
		"requested: enough": func(env *perduretest.Env) {
			env.Stub("charge").Takes(time.Hour).Returns("late")
			env.AfterFunc(time.Second, func() {
				if err := env.Client().CancelActivity(t.Context(), "one", 3, "enough"); err != nil {
					t.Error(err)
				}
			})
		},
	} {
		env := perduretest.New(t, r)
		prepare(env)
		id, err := env.Client().Start(t.Context(), "charge-or-explain", 70, client.WithInstanceID("one"))
		if err != nil {
			t.Fatal(err)
		}
		if got := waitFor[string](t, env, id); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Only a cancellation of the instance ends as Cancelled.
func TestAwaitPayment_timeoutOrCancellation_hasItsStatus(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "await-payment", awaitPayment)
	env := perduretest.New(t, r)
	for id, want := range map[string]client.RuntimeStatus{
		"late": client.StatusFailed, "withdrawn": client.StatusCancelled,
	} {
		_, err := env.Client().Start(t.Context(), "await-payment", "7", client.WithInstanceID(id))
		if err != nil {
			t.Fatal(err)
		}
		if want == client.StatusCancelled {
			if err := env.Client().Cancel(t.Context(), id, "the customer withdrew"); err != nil {
				t.Fatal(err)
			}
		}
		s, err := env.Client().Wait(t.Context(), id)
		took := s.UpdatedAt.Sub(s.CreatedAt)
		if err != nil || s.Status != want || (id == "late") != (took >= 48*time.Hour) {
			t.Errorf("%s: %s after %v, %v", id, s.Status, took, err)
		}
	}
}

func TestStub_failureWithDetails_reachesCaller(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pay-available", payAvailable)
	perdure.AddActivity(r, "charge", Charge)
	env := perduretest.New(t, r)
	declined := perdure.WithErrorDetails(errors.New("declined"), Decline{Code: 51, AvailableCents: 40})
	env.Stub("charge").Fails(1, declined).Returns("charged 40")
	id, err := env.Client().Start(t.Context(), "pay-available", 70)
	if err != nil {
		t.Fatal(err)
	}
	if got := waitFor[string](t, env, id); got != "charged 40" {
		t.Error(got)
	}
}

// The test crashes at every AWS call in turn.
func TestPayOnce_crashAtEveryCall_chargesAtMostOnce(t *testing.T) {
	t.Parallel()
	interrupted := 0
	for n := 1; ; n++ {
		charges := 0
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "pay-once", payOnce)
		perdure.AddActivity(r, "charge", func(ctx context.Context, cents int) (string, error) {
			charges++
			return Charge(ctx, cents)
		})
		env := perduretest.New(t, r)
		id, err := env.Client().Start(t.Context(), "pay-once", 200)
		if err != nil {
			t.Fatal(err)
		}
		calls := env.AWSCalls()
		env.CrashAt(n)
		s, err := env.Client().Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Result[string](s)
		if err != nil && !strings.Contains(err.Error(), "check whether 200 cents were charged") {
			t.Errorf("crash at call %d: %v", n, err)
		}
		if err != nil {
			interrupted++
		}
		if charges > 1 || charges == 0 && err == nil {
			t.Errorf("crash at call %d: charged %d times, %v", n, charges, err)
		}
		if env.AWSCalls()-calls < n {
			break
		}
	}
	if interrupted == 0 {
		t.Error("no crash interrupted the charge")
	}
}

// waitFor returns the result of an instance.
func waitFor[T any](t *testing.T, env *perduretest.Env, id string) T {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Result[T](s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
