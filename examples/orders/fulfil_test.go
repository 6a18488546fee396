package orders_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// fulfil runs an order in virtual time and returns how it ended.
func fulfil(t *testing.T, shop *orders.Shop, o orders.Order) (client.Status, []history.Event) {
	t.Helper()
	r := perdure.NewRegistry()
	orders.Register(r, shop)
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "fulfil-order", o, client.WithInstanceID(o.ID))
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var events []history.Event
	for e, err := range env.Client().History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return s, events
}

func scheduled(events []history.Event) map[string]int {
	names := map[string]int{}
	for _, e := range events {
		if e.Kind == history.ActivityScheduled {
			names[e.Name]++
		}
	}
	return names
}

func TestAnOrderIsReservedChargedAndShipped(t *testing.T) {
	t.Parallel()
	o := orders.Order{ID: "o-1", Lines: []orders.Line{{SKU: "a", Quantity: 2, UnitCents: 150}, {SKU: "b", Quantity: 1, UnitCents: 1000}}}
	s, events := fulfil(t, orders.NewShop(), o)
	f, err := client.Result[orders.Fulfilment](s)
	if err != nil || f.Status != orders.StatusShipped || f.Receipt.Cents != 1300 || f.Shipment.Tracking == "" {
		t.Errorf("got %+v, %v", f, err)
	}
	if n := scheduled(events); n["reserve-stock"] != 2 || n["charge-card"] != 1 || n["ship-parcel"] != 1 {
		t.Errorf("activities %v", n)
	}
}

// The lines are reserved side by side: ten take as long as one.
func TestLinesAreReservedInParallel(t *testing.T) {
	t.Parallel()
	o := orders.Order{ID: "o-1"}
	for range 10 {
		o.Lines = append(o.Lines, orders.Line{SKU: "a", Quantity: 1, UnitCents: 1})
	}
	s, _ := fulfil(t, &orders.Shop{Latency: time.Second}, o)
	if took := s.UpdatedAt.Sub(s.CreatedAt); took != 3*time.Second {
		t.Errorf("reserve, charge and ship took %v, want 3 s", took)
	}
}

func TestAShortOrderIsReleasedAndChargesNothing(t *testing.T) {
	t.Parallel()
	o := orders.Order{ID: "o-1", Lines: []orders.Line{{SKU: "a", Quantity: 1, UnitCents: 1}, {SKU: "grinder-burr-steel", Quantity: 3, UnitCents: 1}}}
	s, events := fulfil(t, orders.NewShop(), o)
	f, err := client.Result[orders.Fulfilment](s)
	if err != nil || f.Status != orders.StatusBackOrder || len(f.Short) != 1 || f.Short[0] != "2 × grinder-burr-steel" {
		t.Errorf("got %+v, %v", f, err)
	}
	if n := scheduled(events); n["release-stock"] != 2 || n["charge-card"] != 0 {
		t.Errorf("activities %v", n)
	}
}

func TestABadLineFailsTheOrder(t *testing.T) {
	t.Parallel()
	s, _ := fulfil(t, orders.NewShop(), orders.Order{ID: "o-1", Lines: []orders.Line{{SKU: "a", Quantity: -1}}})
	if s.Status != client.StatusFailed || s.Failure == nil {
		t.Errorf("got %v %+v", s.Status, s.Failure)
	}
}

// The file that make run fulfils is good: every order ends, and all but the one that is short are shipped.
func TestTheExampleOrders(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []orders.Order
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	ended := map[string]int{}
	for _, o := range all {
		s, _ := fulfil(t, orders.NewShop(), o)
		f, err := client.Result[orders.Fulfilment](s)
		if err != nil {
			t.Errorf("%s: %v", o.ID, err)
		}
		ended[f.Status]++
	}
	if ended[orders.StatusShipped] != len(all)-1 || ended[orders.StatusBackOrder] != 1 {
		t.Errorf("ended %v", ended)
	}
}
