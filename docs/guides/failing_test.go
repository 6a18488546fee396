package guides_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// DeclinedError is an error with a type of its own, which has fields in its details alone.
type DeclinedError struct{ Why string }

func (d *DeclinedError) Error() string { return "the card was declined: " + d.Why }

type decline struct {
	Code  int
	Cents int // that are left
}

// charge declines more than there is.
func charge(_ context.Context, cents int) (string, error) {
	const left = 300
	if cents > left {
		err := perdure.NonRetryable(&DeclinedError{Why: "no funds"})
		return "", perdure.WithDetails(err, decline{Code: 51, Cents: left})
	}
	return fmt.Sprintf("charged %d", cents), nil
}

// payInParts charges what is left where that is not enough.
func payInParts(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	paid, err := perdure.CallActivityByName[string](ctx, "charge", cents).Await(ctx)
	if d, why := perdure.DetailsOf[decline](err); why == nil && d.Code == 51 && 2*d.Cents > cents {
		return perdure.CallActivityByName[string](ctx, "charge", d.Cents).Await(ctx)
	}
	return paid, err
}

// payOnce never charges twice.
func payOnce(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	paid, err := perdure.CallActivityByName[string](ctx, "charge", cents, perdure.AtMostOnce()).Await(ctx)
	if _, interrupted := errors.AsType[*perdure.InterruptedError](err); interrupted {
		return "", fmt.Errorf("look for a charge of %d cents before it is made again: %w", cents, err)
	}
	return paid, err
}

func whatIsLeft(ctx context.Context, hub *client.Client, id string) (cents int, err error) {
	s, err := hub.Wait(ctx, id)
	if err != nil {
		return 0, err
	}
	_, failed := client.Result[string](s)
	d, err := perdure.DetailsOf[decline](failed)
	return d.Cents, err
}

func TestTheGuideToFailing(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pay-in-parts", payInParts)
	perdure.AddActivity(r, "charge", charge)
	env := perduretest.New(t, r)
	hub := env.Client()
	for cents, want := range map[int]string{200: "charged 200", 500: "charged 300"} {
		id, err := hub.Start(t.Context(), "pay-in-parts", cents)
		if err != nil {
			t.Fatal(err)
		}
		if got := waitFor[string](t, env, id); got != want {
			t.Errorf("%d: %s", cents, got)
		}
	}
	id, err := hub.Start(t.Context(), "pay-in-parts", 700)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := whatIsLeft(t.Context(), hub, id); left != 300 || err != nil {
		t.Errorf("%d are left, %v", left, err)
	}
}

// A stub fails with details as the activity does.
func TestAStubFailsWithDetails(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pay-in-parts", payInParts)
	perdure.AddActivity(r, "charge", charge)
	env := perduretest.New(t, r)
	env.Stub("charge").Fails(1, perdure.WithDetails(errors.New("declined"), decline{Code: 51, Cents: 40})).Returns("charged 40")
	id, err := env.Client().Start(t.Context(), "pay-in-parts", 70)
	if err != nil {
		t.Fatal(err)
	}
	if got := waitFor[string](t, env, id); got != "charged 40" {
		t.Error(got)
	}
}

// A crash at every call: the card is charged once at the most, and where nobody knows the error says so.
func TestTheGuideChargesOnce(t *testing.T) {
	t.Parallel()
	interrupted := 0
	for n := 1; ; n++ {
		charges := 0
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "pay-once", payOnce)
		perdure.AddActivity(r, "charge", func(ctx context.Context, cents int) (string, error) {
			charges++
			return charge(ctx, cents)
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
		if err != nil && !strings.Contains(err.Error(), "look for a charge of 200 cents") {
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
		t.Error("no crash has interrupted it")
	}
}

// waitFor is the result of an instance.
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
