package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// Custom statuses of orders.
var (
	charged  = []string{orders.Reserving, orders.Charging}
	packing  = append(slices.Clone(charged), orders.Packing)
	shipping = append(slices.Clone(packing), orders.Shipping)
)

func undone(way []string) []string { return append(slices.Clone(way), orders.Undoing) }

func TestFulfilOrder_outcomes(t *testing.T) {
	t.Parallel()
	const never = -1
	for name, tt := range map[string]struct {
		change      func(*orders.Order)
		packedAfter time.Duration
		status      string // status of the fulfilment, or "failed"
		called      string
		statuses    []string
	}{
		"delivered": {
			packedAfter: time.Hour, status: orders.StatusDelivered, statuses: shipping,
			called: "reserve-stock charge-card book-carrier print-label track-parcel*",
		},
		"missing stock": {
			change: func(o *orders.Order) {
				o.Lines = append(o.Lines, orders.Line{SKU: "grinder-burr-steel", Quantity: 3})
			},
			packedAfter: never, status: orders.StatusBackOrder, statuses: []string{orders.Reserving, orders.Undoing},
			called: "2×reserve-stock 2×release-stock",
		},
		"invalid line": {
			change:      func(o *orders.Order) { o.Lines = append(o.Lines, orders.Line{SKU: "jug", Quantity: -1}) },
			packedAfter: never, status: "failed", statuses: []string{orders.Reserving, orders.Undoing},
			called: "2×reserve-stock release-stock",
		},
		"card declined": {
			change:      func(o *orders.Order) { o.Card.Token = orders.TokenDeclined },
			packedAfter: never, status: "failed", statuses: undone(charged),
			called: "reserve-stock charge-card release-stock",
		},
		"two network errors": {
			change:      func(o *orders.Order) { o.Card.Token = orders.TokenFlaky },
			packedAfter: time.Hour, status: orders.StatusDelivered, statuses: shipping,
			called: "reserve-stock charge-card book-carrier print-label track-parcel*",
		},
		"unknown whether the card was charged": {
			change:      func(o *orders.Order) { o.Card.Token = orders.TokenDead },
			packedAfter: never, status: "failed", statuses: undone(charged),
			called: "reserve-stock charge-card refund-card release-stock",
		},
		"no response from the card processor": {
			change:      func(o *orders.Order) { o.Card.Token = orders.TokenSilent },
			packedAfter: never, status: orders.StatusUnpaid, statuses: undone(charged),
			called: "reserve-stock charge-card refund-card release-stock",
		},
		"not packed in time": {
			packedAfter: never, status: orders.StatusCancelled, statuses: undone(packing),
			called: "reserve-stock charge-card refund-card release-stock",
		},
		"no carrier": {
			change:      func(o *orders.Order) { o.ShipTo.Country = orders.CountryNoCarrier },
			packedAfter: time.Hour, status: "failed", statuses: undone(shipping),
			called: "reserve-stock charge-card book-carrier refund-card release-stock",
		},
		"parcel lost": {
			change:      func(o *orders.Order) { o.ShipTo.Country = orders.CountryLost },
			packedAfter: time.Hour, status: orders.StatusLost, statuses: undone(shipping),
			called: "reserve-stock charge-card book-carrier print-label track-parcel* refund-card",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := orders.NewShop()
			shop.Transit = 40 * time.Hour
			e := fulfil(t, shop, order(tt.change), tt.packedAfter)
			status := e.fulfilment.Status
			if e.Failure != nil {
				status = "failed"
			}
			if status != tt.status {
				t.Errorf("%s, want %s: %+v, %+v", status, tt.status, e.fulfilment, e.Failure)
			}
			if got := called(e); got != tt.called {
				t.Errorf("activities\n%s, want\n%s", got, tt.called)
			}
			if diff := cmp.Diff(tt.statuses, e.statuses); diff != "" {
				t.Errorf("custom statuses (-want +got):\n%s", diff)
			}
		})
	}
}

// called joins the names of the activities. It combines repeated names and omits the number of polls.
func called(e ended) string {
	var words []string
	for names := e.called; len(names) > 0; {
		n := 1
		for n < len(names) && names[n] == names[0] {
			n++
		}
		switch word := names[0]; {
		case word == "track-parcel":
			words = append(words, word+"*")
		case n > 1:
			words = append(words, fmt.Sprintf("%d×%s", n, word))
		default:
			words = append(words, word)
		}
		names = names[n:]
	}
	return strings.Join(words, " ")
}

func TestFulfilOrder_delivered_hasReceiptAndShipment(t *testing.T) {
	t.Parallel()
	o := order(func(o *orders.Order) {
		o.Lines = append(o.Lines, orders.Line{SKU: "pot", Quantity: 1, UnitCents: 1000})
	})
	e := fulfil(t, &orders.Shop{Transit: 40 * time.Hour}, o, time.Hour)
	f := e.fulfilment
	if f.Receipt == nil || f.Receipt.Cents != 1300 || f.Shipment == nil || f.Shipment.Carrier != "Northwind" ||
		f.Shipment.Tracking == "" || f.Shipment.Lost {
		t.Errorf("receipt %+v, shipment %+v", f.Receipt, f.Shipment)
	}
	if took := e.took(); took < 41*time.Hour || took > 54*time.Hour {
		t.Errorf("took %v, want 41 to 54 hours: 1 hour to pack, 40 hours to deliver, polls at least every 12 hours",
			took)
	}
}

func TestFulfilOrder_manyLines_areReservedConcurrently(t *testing.T) {
	t.Parallel()
	o := order(func(o *orders.Order) {
		o.Lines = slices.Repeat([]orders.Line{{SKU: "grinder", Quantity: 2}}, 10)
	})
	e := fulfil(t, &orders.Shop{Stock: map[string]int{"grinder": 1}, Latency: time.Second}, o, -1)
	if took := e.took(); took != 2*time.Second || len(e.called) != 20 {
		t.Errorf("reserving ten lines and releasing them took %v and %d activities, want 2 s and 20", took,
			len(e.called))
	}
}

func TestFulfilOrder_missingStock_listsTheItems(t *testing.T) {
	t.Parallel()
	o := order(func(o *orders.Order) { o.Lines = append(o.Lines, orders.Line{SKU: "grinder-burr-steel", Quantity: 3}) })
	e := fulfil(t, orders.NewShop(), o, -1)
	if diff := cmp.Diff([]string{"2 × grinder-burr-steel"}, e.fulfilment.Short); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestFulfilOrder_declinedCard_isNotRetried(t *testing.T) {
	t.Parallel()
	e := fulfil(t, &orders.Shop{}, order(func(o *orders.Order) { o.Card.Token = orders.TokenDeclined }), -1)
	if e.took() != 0 {
		t.Errorf("took %v, want no retry delay", e.took())
	}
	if e.Failure == nil || e.Failure.Cause == nil || e.Failure.Cause.Type != orders.CardDeclined {
		t.Errorf("failure %+v", e.Failure)
	}
}

// The retry delays are 0.5 s and 1 s.
func TestFulfilOrder_twoNetworkErrors_chargesInTheThirdAttempt(t *testing.T) {
	t.Parallel()
	o := order(func(o *orders.Order) { o.Card.Token = orders.TokenFlaky })
	e := fulfil(t, &orders.Shop{}, o, 0)
	if want := 1500*time.Millisecond + time.Second; e.took() != want {
		t.Errorf("took %v, want 1.5 s of retry delays and 1 s until the first poll", e.took())
	}
}

// The default time limit of the warehouse is one day.
func TestFulfilOrder_notPackedInTime_isCancelled(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]time.Duration{0: 24 * time.Hour, 90: 90 * time.Second} {
		e := fulfil(t, &orders.Shop{}, order(func(o *orders.Order) { o.PackWithinSeconds = seconds }), -1)
		if late := e.took() - want; late < 0 || late > time.Second {
			t.Errorf("%d: cancelled after %v, want %v", seconds, e.took(), want)
		}
		if e.fulfilment.Status != orders.StatusCancelled || e.fulfilment.Receipt == nil {
			t.Errorf("%d: %+v", seconds, e.fulfilment)
		}
	}
	if e := fulfil(t, &orders.Shop{}, order(nil),
		23*time.Hour+59*time.Minute); e.fulfilment.Status != orders.StatusDelivered {
		t.Errorf("packed in the last minute: %+v", e.fulfilment)
	}
}

// An event that arrives before the order waits for it is kept.
func TestFulfilOrder_packedEarly_isDelivered(t *testing.T) {
	t.Parallel()
	e := fulfil(t, orders.NewShop(), order(nil), 0)
	if e.fulfilment.Status != orders.StatusDelivered || e.took() > time.Minute {
		t.Errorf("%+v after %v", e.fulfilment, e.took())
	}
}

func TestFulfilOrder_failedRefund_keepsTheCauseAndReleasesTheStock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		country     string
		packedAfter time.Duration
		why         string
	}{
		"after a failure":     {orders.CountryNoCarrier, 0, "no carrier delivers to"},
		"after a lost parcel": {orders.CountryLost, 0, "the order is lost"},
		"after a day":         {"SE", -1, "the order is cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order(func(o *orders.Order) { o.Card.Token, o.ShipTo.Country = orders.TokenNoRefund, tt.country })
			e := fulfil(t, &orders.Shop{}, o, tt.packedAfter)
			if e.Status.Status != client.StatusFailed || e.Failure == nil {
				t.Fatalf("%s, %+v", e.Status.Status, e.fulfilment)
			}
			for _, want := range []string{tt.why, "refund the card", "the account is closed"} {
				if !strings.Contains(e.Failure.Message, want) {
					t.Errorf("the failure does not contain %q: %s", want, e.Failure.Message)
				}
			}
			if released := slices.Contains(e.called, "release-stock"); released == (tt.country == orders.CountryLost) {
				t.Errorf("released: %v, activities: %v", released, e.called)
			}
		})
	}
}

func TestFulfilOrder_paymentTimeout_cancelsTheCharge(t *testing.T) {
	t.Parallel()
	o := order(func(o *orders.Order) { o.Card.Token, o.PayWithinSeconds = orders.TokenSilent, 5 })
	e := fulfil(t, orders.NewShop(), o, -1)
	if e.fulfilment.Status != orders.StatusUnpaid || e.took() < 5*time.Second || e.took() > 8*time.Second {
		t.Errorf("%+v after %v", e.fulfilment, e.took())
	}
	if diff := cmp.Diff([]string{"charge-card: select_loser"}, e.cancelled); diff != "" {
		t.Errorf("cancelled (-want +got):\n%s", diff)
	}
}

// A cancellation takes effect until the parcel is shipped.
func TestFulfilOrder_cancelled_refundsUnlessShipped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		packed bool
		want   client.RuntimeStatus
		called string
	}{
		"waiting to be packed": {false, client.StatusCancelled, "reserve-stock charge-card refund-card release-stock"},
		"on its way": {
			true, client.StatusCompleted, "reserve-stock charge-card book-carrier print-label track-parcel*",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, id := placed(t, orders.NewShop(), order(nil))
			env.Advance(time.Minute)
			if tt.packed {
				if err := env.Client().RaiseEvent(t.Context(), id, orders.EventPacked, nil); err != nil {
					t.Fatal(err)
				}
				env.Advance(time.Second)
			}
			if err := env.Client().Cancel(t.Context(), id, "withdrawn"); err != nil {
				t.Fatal(err)
			}
			e := awaited(t, env, id)
			if got := called(e); e.Status.Status != tt.want || got != tt.called {
				t.Errorf("%s, activities\n%s, want\n%s", e.Status.Status, got, tt.called)
			}
		})
	}
}

func TestFulfilOrder_cancelledDuringReservations_releasesTheReservedLines(t *testing.T) {
	t.Parallel()
	env, id := placed(t, orders.NewShop(), order(func(o *orders.Order) {
		o.Lines = append(o.Lines, orders.Line{SKU: "knock-box", Quantity: 1, UnitCents: 900})
	}))
	perduretest.StubFunc(env, "reserve-stock", func(ctx context.Context, l orders.Line) (orders.Reservation, error) {
		if l.SKU == "knock-box" {
			<-ctx.Done()
			return orders.Reservation{}, context.Cause(ctx)
		}
		return orders.Reservation{ID: "res-1", SKU: l.SKU}, nil
	})
	env.Advance(time.Second)
	if err := env.Client().Cancel(t.Context(), id, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	if s := awaited(t, env, id).Status.Status; s != client.StatusCancelled {
		t.Error(s)
	}
	released := env.Calls("release-stock")
	if len(released) != 1 {
		t.Fatalf("released: %+v", released)
	}
	if r, err := perduretest.CallInput[orders.Reservation](released[0]); err != nil || r.ID != "res-1" {
		t.Errorf("released %+v, %v", r, err)
	}
}

// The charge ignores the cancellation, so the refund waits until the charge has ended.
func TestFulfilOrder_cancelledDuringPayment_refundsAfterTheCharge(t *testing.T) {
	t.Parallel()
	env, id := placed(t, orders.NewShop(), order(func(o *orders.Order) { o.Card.Token = orders.TokenSlow }))
	env.Advance(time.Second)
	if err := env.Client().Cancel(t.Context(), id, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	e := awaited(t, env, id)
	if got, want := called(e),
		"reserve-stock charge-card refund-card release-stock"; e.Status.Status != client.StatusCancelled ||
		got != want {
		t.Errorf("%s, activities\n%s, want\n%s", e.Status.Status, got, want)
	}
	charged, ended := int64(0), false
	for event, err := range env.Client().History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case event.Name == "charge-card":
			charged = event.ID
		case event.Kind == history.ActivityCompleted && event.SourceEventID == charged:
			ended = event.Cancel != nil && event.Cancel.Outcome == history.OutcomeReturned
		case event.Name == "refund-card" && !ended:
			t.Error("the refund started before the charge ended")
		}
	}
}

func TestFulfilOrder_exampleOrders_endAsExpected(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []orders.Order
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, o := range all {
		packedAfter := time.Duration(0)
		if o.PackWithinSeconds > 0 || o.PayWithinSeconds > 0 {
			packedAfter = -1
		}
		e := fulfil(t, orders.NewShop(), o, packedAfter)
		if e.Failure != nil {
			e.fulfilment.Status = e.Failure.Cause.Type
		}
		seen[e.fulfilment.Status]++
	}
	want := map[string]int{
		orders.StatusDelivered: 5, orders.StatusBackOrder: 1, orders.StatusCancelled: 1, orders.StatusUnpaid: 1,
		orders.StatusLost: 1, orders.CardDeclined: 1,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An activity is a plain function, so a test can call it.
func TestChargeCard_cancelledContext_returnsItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("no longer needed")
	cancel(gone)
	if _, err := orders.NewShop().ChargeCard(ctx, orders.Payment{}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
