package guides_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// Parcel is a parcel to send.
type Parcel struct {
	Country string
	Grams   int
}

var errUnknownCountry = errors.New("unknown country")

func checkAddress(_ context.Context, country string) (bool, error) {
	if country == "XX" {
		return false, perdure.NonRetryable(errUnknownCountry)
	}
	return true, nil
}

func tariff(_ context.Context, grams int) (int, error) { return 400 + grams/10, nil }

func book(_ context.Context, _ int) (string, error) { return "booked", nil }

func parcelRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "check-address", checkAddress, perdure.Inline()) // every call of it
	perdure.AddActivity(r, "tariff", tariff)
	perdure.AddActivity(r, "book", book)
	perdure.AddOrchestration(r, "send", sendParcel)
	return r
}

func sendParcel(ctx *perdure.OrchestrationContext, p Parcel) (string, error) {
	valid := perdure.CallActivity(ctx, checkAddress, p.Country)
	cents := perdure.CallActivity(ctx, tariff, p.Grams, perdure.Inline()) // this call
	if err := perdure.WhenAll(ctx, valid, cents); err != nil {            // in parallel, with one write
		return "", err
	}
	price, err := cents.Await(ctx)
	if err != nil {
		return "", err
	}
	// on a queue, because it may have to be undone
	return perdure.CallActivity(ctx, book, price, perdure.WaitForCancellation()).Await(ctx)
}

func TestInline_shortActivities_runOnce(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, parcelRegistry())
	if got := runSend(t, env); got != "booked" {
		t.Errorf("got %q", got)
	}
	if ran := env.Calls("check-address"); len(ran) != 1 || ran[0].Attempt != 1 {
		t.Errorf("%+v", ran)
	}
}

func TestInline_timeout_movesToQueue(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, parcelRegistry())
	env.Stub("tariff").Takes(10 * time.Second).Returns(700) // stopped after two seconds, then runs in its worker
	if got := runSend(t, env); got != "booked" || len(env.Calls("tariff")) != 2 {
		t.Errorf("got %q, after %+v", got, env.Calls("tariff"))
	}
}

func runSend(t *testing.T, env *perduretest.Env) string {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "send", Parcel{"AT", 1200})
	if err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Result[string](status)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
