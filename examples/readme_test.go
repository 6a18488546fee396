package examples_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func FulfilOrder(ctx *perdure.OrchestrationContext, o Order) (s Shipment, err error) {
	_, err = perdure.CallActivity(ctx, ChargeCard, o.Payment(), retries, perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, refund(o)) // runs if the charge or a later step fails
	if err != nil {
		return s, err
	}

	packed := perdure.WaitForExternalEvent[struct{}](ctx, "packed")
	deadline := perdure.CreateTimer(ctx, 24*time.Hour)
	if winner, selectErr := perdure.Select(ctx, packed, deadline); selectErr != nil || winner == 1 {
		return s, cmp.Or(selectErr, ErrNotPacked)
	}

	return perdure.CallSubOrchestration(ctx, ShipOrder, o).Await(ctx)
}

// The types and activities of the order.
type (
	Order   struct{ ID string }
	Payment struct {
		Key string `json:"key"`
	}
	Shipment struct{ OrderID string }
)

// Payment returns what the card is charged for. The key makes a repeated charge harmless.
func (o Order) Payment() Payment { return Payment{Key: o.ID} }

var (
	ErrNotPacked = errors.New("the order was not packed in time")

	retries = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3})
)

func ChargeCard(context.Context, Payment) (struct{}, error) { return struct{}{}, nil }

func RefundCard(context.Context, Payment) (struct{}, error) { return struct{}{}, nil }

func refund(o Order) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, RefundCard, o.Payment()).Await(ctx)
		return err
	}
}

func ShipOrder(_ *perdure.OrchestrationContext, o Order) (Shipment, error) {
	return Shipment{o.ID}, nil
}

// shop is the application of the README.
type shop struct{}

func (shop) Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil-order", FulfilOrder)
	perdure.AddOrchestration(r, "ship-order", ShipOrder)
	perdure.AddActivity(r, "charge", ChargeCard)
	perdure.AddActivity(r, "refund", RefundCard)
	return r
}

var app shop

// The README ignores the errors of this code to stay short.
//
// nolint:ineffassign,staticcheck,wastedassign // the README omits error checks
func TestReadme_orderIsNotPacked_refundsTheCard(t *testing.T) {
	t.Parallel()
	order := Order{"7"}
	env := perduretest.New(t, app.Registry())
	id, err := env.Client().Start(t.Context(), "fulfil-order", order)
	env.Advance(24 * time.Hour) // takes milliseconds
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil || status.Status != client.StatusFailed ||
		!strings.Contains(status.Failure.Message, ErrNotPacked.Error()) {
		t.Errorf("%+v, %v", status, err)
	}
	wantCalls(t, env, "charge 7", "refund 7")
}

func TestReadme_orderEnds_refundsUnlessItShips(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stub  error // the error of the charge
		act   func(*testing.T, *perduretest.Env) error
		ends  client.RuntimeStatus
		calls []string
	}{
		{
			name: "packed",
			act: func(t *testing.T, env *perduretest.Env) error {
				t.Helper()
				return env.Client().RaiseEvent(t.Context(), "one", "packed", nil)
			},
			ends:  client.StatusCompleted,
			calls: []string{"charge 7"},
		},
		{
			name: "cancelled",
			act: func(t *testing.T, env *perduretest.Env) error {
				t.Helper()
				return env.Client().Cancel(t.Context(), "one", "")
			},
			ends:  client.StatusCancelled,
			calls: []string{"charge 7", "refund 7"},
		},
		{
			name:  "declined",
			stub:  perdure.NonRetryable(errors.New("card declined")),
			ends:  client.StatusFailed,
			calls: []string{"charge 7", "refund 7"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, app.Registry())
			if tt.stub != nil {
				env.Stub("charge").Fails(1, tt.stub)
			}
			if _, err := env.Client().Start(t.Context(), "fulfil-order", Order{"7"},
				client.WithInstanceID("one")); err != nil {
				t.Fatal(err)
			}
			env.Advance(time.Minute)
			if tt.act != nil {
				if err := tt.act(t, env); err != nil {
					t.Fatal(err)
				}
			}
			if s, err := env.Client().Wait(t.Context(), "one"); err != nil || s.Status != tt.ends {
				t.Errorf("%s, want %s: %v, %v", s.Status, tt.ends, s.Failure, err)
			}
			wantCalls(t, env, tt.calls...)
		})
	}
}

func TestReadme_cancelDuringTheCharge_refundsAfterIt(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, app.Registry())
	perduretest.StubFunc(env, "charge", func(context.Context, Payment) (none struct{}, err error) {
		time.Sleep(5 * time.Second) // virtual time; the bank does not observe the cancellation
		return none, nil
	})
	id, err := env.Client().Start(t.Context(), "fulfil-order", Order{"7"})
	if err != nil {
		t.Fatal(err)
	}
	env.AfterFunc(time.Second, func() {
		if err := env.Client().Cancel(t.Context(), id, "another shop was cheaper"); err != nil {
			t.Error(err)
		}
	})
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusCancelled {
		t.Errorf("%s, %v", s.Status, err)
	}
	wantCalls(t, env, "charge 7", "refund 7")
	if calls := env.Calls(); len(calls) == 2 && calls[1].StartedAt < calls[0].StartedAt+calls[0].Duration {
		t.Errorf("the refund started at %v, before the charge ended: %+v", calls[1].StartedAt, calls[0])
	}
}

// wantCalls checks the calls of activities, in the order in which they started.
func wantCalls(t *testing.T, env *perduretest.Env, want ...string) {
	t.Helper()
	var calls []string
	for _, c := range env.Calls() {
		var p Payment
		if err := json.Unmarshal(c.Input, &p); err != nil {
			t.Error(err)
		}
		calls = append(calls, c.Activity+" "+p.Key)
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls: %q, want %q", calls, want)
	}
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Each Go block of README.md is code of this file, or a main function of functions/.
func TestReadme_goBlocks_areCompiled(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	outdented := regexp.MustCompile(`(?m)^\t+`)
	for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
		if !strings.HasPrefix(block[1], "func main()") &&
			!strings.Contains(outdented.ReplaceAllString(string(code), ""), outdented.ReplaceAllString(block[1], "")) {
			t.Errorf("not in this file:\n%s", block[1])
		}
	}
}
