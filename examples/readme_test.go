package examples_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func FulfilOrder(ctx *perdure.OrchestrationContext, o Order) (s Shipment, err error) {
	held, err := reserveAll(ctx, o.Lines)              // every line at once; where one fails, what the others hold
	defer perdure.Compensate(ctx, &err, release(held)) // if this or a later step fails, or the order is cancelled
	if err != nil {
		return s, err
	}
	_, err = chargeCard.Call(ctx, payment(o), retried, perdure.WaitForCancellation()).Await(ctx) // has a key: no crash charges a card twice
	defer perdure.Compensate(ctx, &err, refund(o))                                               // also if this fails: the answer may be lost, and the money gone
	if err != nil {
		return s, err
	}
	packed, late := perdure.WaitForExternalEvent[struct{}](ctx, "packed"), perdure.CreateTimer(ctx, 24*time.Hour)
	if first, err := perdure.Select(ctx, packed, late); err != nil || first == 1 {
		return s, cmp.Or(err, ErrNotPacked) // refunds the card, then releases the stock
	}
	return perdure.CallSubOrchestration(ctx, ShipOrder, Parcel{OrderID: o.ID, Reservations: held}).Await(ctx)
}

// Types of the example in README.md.
type (
	Order struct {
		ID    string
		Lines []string
	}
	Parcel struct {
		OrderID      string
		Reservations []string
	}
	Payment  struct{ Key string }
	Shipment struct{ OrderID string }
)

var ErrNotPacked = errors.New("not packed in time")

var (
	reserve      = perdure.DefineActivity[string, string]("reserve")
	releaseStock = perdure.DefineActivity[[]string, struct{}]("release")
	chargeCard   = perdure.DefineActivity[Payment, struct{}]("charge")
	refundCard   = perdure.DefineActivity[Payment, struct{}]("refund")
	retried      = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3})
)

// reserveAll returns the successful reservations even if a line fails.
func reserveAll(ctx *perdure.OrchestrationContext, lines []string) (held []string, err error) {
	var all []*perdure.Future[string]
	for _, l := range lines {
		all = append(all, reserve.Call(ctx, l))
	}
	err = perdure.WhenAll(ctx, perdure.Awaitables(all)...)
	for _, f := range all { // with a cancelled ctx, Await returns only the cancellation
		if id, failed := f.Await(perdure.WithoutCancel(ctx)); failed == nil {
			held = append(held, id)
		}
	}
	return held, err
}

func release(held []string) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := releaseStock.Call(ctx, held).Await(ctx)
		return err
	}
}

func payment(o Order) Payment { return Payment{Key: o.ID} }

func refund(o Order) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := refundCard.Call(ctx, payment(o)).Await(ctx)
		return err
	}
}

func ShipOrder(_ *perdure.OrchestrationContext, p Parcel) (Shipment, error) {
	return Shipment{p.OrderID}, nil
}

// shop records the calls of its activities.
type shop struct {
	mu   sync.Mutex
	done []string
}

func (s *shop) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
}

const soldOut = "sold out"

func (s *shop) Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil-order", FulfilOrder)
	perdure.AddOrchestration(r, "ship-order", ShipOrder)
	reserve.Register(r, func(_ context.Context, line string) (string, error) {
		if line == soldOut {
			return "", perdure.NonRetryable(errors.New(soldOut))
		}
		s.note("reserve " + line)
		return line, nil
	})
	releaseStock.Register(r, func(_ context.Context, held []string) (none struct{}, err error) {
		s.note("release " + strings.Join(held, " "))
		return none, nil
	})
	for activity, what := range map[*perdure.ActivityRef[Payment, struct{}]]string{&chargeCard: "charge ", &refundCard: "refund "} {
		activity.Register(r, func(_ context.Context, p Payment) (none struct{}, err error) {
			s.note(what + p.Key)
			return none, nil
		})
	}
	return r
}

// An order that is not packed within a day of virtual time is undone.
//
//nolint:ineffassign,staticcheck,wastedassign // README.md does not check every error
func TestTheOrderOfTheReadmeIsUndone(t *testing.T) {
	t.Parallel()
	mine, order := &shop{}, Order{"7", []string{"box"}}
	env := perduretest.New(t, mine.Registry())
	id, err := env.Client().Start(t.Context(), "fulfil-order", order)
	env.Advance(24 * time.Hour) // takes no time
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil || status.Status != client.StatusFailed || !strings.Contains(status.Failure.Message, ErrNotPacked.Error()) {
		t.Errorf("%+v, %v", status, err)
	}
	mine.did(t, "reserve box", "charge 7", "refund 7", "release box")
}

// Other outcomes of an order: shipped, sold out and cancelled.
func TestTheOrderOfTheReadmeEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lines []string
		meets func(*perduretest.Env) error
		ends  client.RuntimeStatus
		done  []string
	}{
		{[]string{"box"}, func(env *perduretest.Env) error { return env.Client().Raise(t.Context(), "one", "packed", nil) }, client.StatusCompleted, []string{"reserve box", "charge 7"}},
		{[]string{soldOut, "box"}, nil, client.StatusFailed, []string{"reserve box", "release box"}},
		{[]string{"box"}, func(env *perduretest.Env) error { return env.Client().Cancel(t.Context(), "one", "") }, client.StatusCancelled, []string{"reserve box", "charge 7", "refund 7", "release box"}},
	} {
		mine := &shop{}
		env := perduretest.New(t, mine.Registry())
		if _, err := env.Client().Start(t.Context(), "fulfil-order", Order{"7", tt.lines}, client.WithInstanceID("one")); err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Minute)
		if tt.meets != nil {
			if err := tt.meets(env); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := env.Client().Wait(t.Context(), "one"); err != nil || s.Status != tt.ends {
			t.Errorf("%s, want %s: %v, %v", s.Status, tt.ends, s.Failure, err)
		}
		mine.did(t, tt.done...)
	}
}

// An order is cancelled while its card is charged. The charge succeeds, and the refund waits for it.
func TestTheOrderOfTheReadmeIsCancelledWhileItIsCharged(t *testing.T) {
	t.Parallel()
	mine := &shop{}
	env := perduretest.New(t, mine.Registry())
	perduretest.StubFunc(env, "charge", func(_ context.Context, p Payment) (none struct{}, err error) {
		time.Sleep(5 * time.Second) // the bank ignores the cancellation
		mine.note("charge " + p.Key)
		return none, nil
	})
	id, err := env.Client().Start(t.Context(), "fulfil-order", Order{"7", []string{"box"}})
	if err != nil {
		t.Fatal(err)
	}
	env.At(time.Second, func() {
		if err := env.Client().Cancel(t.Context(), id, "another shop was cheaper"); err != nil {
			t.Error(err)
		}
	})
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusCancelled {
		t.Errorf("%s, %v", s.Status, err)
	}
	mine.did(t, "reserve box", "charge 7", "refund 7", "release box")
}

func (s *shop) did(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.done, want) {
		t.Errorf("done: %q, want %q", s.done, want)
	}
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every Go block of README.md is code of this file or of functions.
func TestTheCodeOfTheReadmeIsCompiled(t *testing.T) {
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
		if !strings.HasPrefix(block[1], "func main()") && !strings.Contains(outdented.ReplaceAllString(string(code), ""), outdented.ReplaceAllString(block[1], "")) {
			t.Errorf("not in this file:\n%s", block[1])
		}
	}
}
