//nolint:thelper // the body of CrashAtEveryCall is a test, not a helper
package guides_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider/dynamo"
)

type Order struct{ Cents int }

type Receipt struct{ Number string }

// Fulfil charges an order and waits up to a day until it is packed.
func Fulfil(ctx *perdure.OrchestrationContext, o Order) (string, error) {
	retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Minute})
	receipt, err := perdure.CallActivityByName[Receipt](ctx, "charge", o, retry).Await(ctx)
	if err != nil {
		return "", err
	}
	ctx.SetCustomStatus("paid")
	packed := perdure.WaitForExternalEvent[string](ctx, "packed")
	deadline := perdure.CreateTimer(ctx, 24*time.Hour)
	if winner, err := perdure.Select(ctx, packed, deadline); err != nil || winner == 1 {
		return "", cmp.Or(err, errors.New("not packed"))
	}
	parcel, err := packed.Await(ctx)
	return parcel + " for " + receipt.Number, err
}

// Registry has the orchestrations and activities of the application.
func Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, Order) (Receipt, error) { return Receipt{"7"}, nil })
	perdure.AddOrchestration(r, "fulfil", Fulfil)
	return r
}

func TestFulfil_packedInTime_completes(t *testing.T) {
	env := perduretest.New(t, Registry())
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(23 * time.Hour) // virtual time
	if err := env.Client().RaiseEvent(t.Context(), id, "packed", "box"); err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "box for 7" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFulfil_cardDeclinedTwice_retries(t *testing.T) {
	env := perduretest.New(t, Registry())
	env.Stub("charge").Takes(3*time.Second).Fails(2, errors.New("declined")).Returns(Receipt{"8"})
	completeOrder(t, env)

	calls := env.Calls("charge")
	if len(calls) != 3 || calls[1].Attempt != 2 || calls[1].StartedAt != time.Minute+3*time.Second {
		t.Errorf("%+v", calls)
	}
	if o, err := perduretest.CallInput[Order](calls[0]); err != nil || o.Cents != 900 {
		t.Errorf("charged %+v, %v", o, err)
	}
}

// completeOrder starts an order that is packed after an hour, and waits for its end.
func completeOrder(t *testing.T, env *perduretest.Env) {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	env.AfterFunc(time.Hour, func() {
		if err := env.Client().RaiseEvent(t.Context(), id, "packed", "box"); err != nil {
			t.Error(err)
		}
	})
	if status, err := env.Client().Wait(t.Context(), id); err != nil || status.Status != client.StatusCompleted {
		t.Errorf("%s, %v", status.Status, err)
	}
}

func TestFulfil_cardAlwaysDeclined_fails(t *testing.T) {
	env := perduretest.New(t, Registry())
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	env.Stub("charge").Fails(100, &DeclinedError{"stolen card"}) // more often than the policy tries
	status, err := env.Client().Wait(t.Context(), id)            // no error: the instance has ended
	_, failure := client.Result[string](status)
	failed, ok := errors.AsType[*client.OrchestrationError](failure)
	if err != nil || !ok || failed.Failure.Cause.Type != "DeclinedError" {
		t.Errorf("%s: %v, %v", status.Status, failure, err)
	}
	took := status.UpdatedAt.Sub(status.CreatedAt)
	if calls := env.Calls("charge"); len(calls) != 3 || calls[2].StartedAt != took || took != 3*time.Minute {
		t.Errorf("took %v: %+v", took, calls)
	}
}

func TestFulfil_crashAtEveryCall_completes(t *testing.T) {
	perduretest.CrashAtEveryCall(t, func(t *testing.T, crash perduretest.Option) *perduretest.Env {
		env := perduretest.New(t, Registry(), crash)
		completeOrder(t, env)
		return env
	})
}

func TestFulfil_deploymentAndOutage_completes(t *testing.T) {
	env := perduretest.New(t, Registry())
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	if err := env.Client().RaiseEvent(t.Context(), id, "packed", "box"); err != nil {
		t.Fatal(err)
	}
	env.Deploy(Registry()) // the registry of another build
	env.Outage(perduretest.DynamoDB, 10*time.Minute)
	env.Advance(20 * time.Minute)
	if status, err := env.Client().Wait(t.Context(), id); err != nil || status.Status != client.StatusCompleted {
		t.Errorf("%s, %v", status.Status, err)
	}
}

func TestFulfil_notPacked_matchesGoldenHistory(t *testing.T) {
	env := perduretest.New(t, Registry())
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900}, client.WithInstanceID("order-7"))
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(25 * time.Hour) // longer than the deadline
	env.CompareGolden(id, "testdata/not-packed.json")
}

func TestBulkJob_cancelsOpenOrders(t *testing.T) {
	env := perduretest.New(t, Registry())
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	bulk := admin.JobRequest{Operation: admin.OperationCancel, Filter: admin.Filter{Orchestration: "fulfil"}}
	job, err := env.Admin().StartJob(t.Context(), bulk)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(2 * time.Minute) // to the sweeper's next tick
	if job, err = env.Admin().Job(t.Context(), job.ID); err != nil || job.Done != 1 {
		t.Errorf("%+v, %v", job, err)
	}
	if s, err := env.Client().Status(t.Context(), id); err != nil || s.Status != client.StatusCancelled {
		t.Errorf("%s, %v", s.Status, err)
	}
}

// Forecast requests a forecast from a weather service.
func Forecast(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// Tomorrow returns the forecast after a day.
func Tomorrow(ctx *perdure.OrchestrationContext, url string) (string, error) {
	if err := perdure.Sleep(ctx, 24*time.Hour); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, Forecast, url).Await(ctx)
}

func TestTomorrow_realServer_returnsForecast(t *testing.T) {
	sunny := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "sunny") }
	server := httptest.NewServer(http.HandlerFunc(sunny))
	defer server.Close()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "forecast", Forecast)
	perdure.AddOrchestration(r, "tomorrow", Tomorrow)

	env := perduretest.New(t, r, perduretest.WithNetwork("forecast"))
	id, err := env.Client().Start(t.Context(), "tomorrow", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "sunny" {
		t.Errorf("got %q, %v", got, err)
	}
}

// newEnv returns the deployed hub named by TEST_HUB, or a hub in virtual time.
func newEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	name := os.Getenv("TEST_HUB")
	if name == "" {
		return perduretest.New(t, Registry())
	}
	deployed, err := dynamo.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return perduretest.NewDeployed(t, deployed)
}

func TestFulfil_anyHub_completes(t *testing.T) {
	env := newEnv(t)
	id, err := env.Client().Start(t.Context(), "fulfil", Order{Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	env.AfterFunc(time.Second, func() {
		if err := env.Client().RaiseEvent(t.Context(), id, "packed", "box"); err != nil {
			t.Error(err)
		}
	})
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "box for 7" {
		t.Errorf("got %q, %v", got, err)
	}
}
