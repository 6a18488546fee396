package orders_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// ended is the outcome of an order with the steps of its history.
type ended struct {
	client.Status

	fulfilment orders.Fulfilment
	// called has the activities in the order of their scheduling, and statuses has the custom statuses.
	called, statuses []string
	// cancelled has the cancelled activities with their cancel reasons.
	cancelled []string
}

// order returns a valid order, modified by change.
func order(change func(*orders.Order)) orders.Order {
	o := orders.Order{
		ID: "o-1", Card: orders.Card{Token: "tok_visa"}, ShipTo: orders.Address{City: "Uppsala", Country: "SE"},
		Lines: []orders.Line{{SKU: "jug", Quantity: 2, UnitCents: 150}},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// fulfil runs an order to its end in virtual time. The order is packed after packedAfter, or never if it is negative.
func fulfil(t *testing.T, shop *orders.Shop, o orders.Order, packedAfter time.Duration) ended {
	t.Helper()
	env, id := placed(t, shop, o)
	if packedAfter >= 0 {
		env.Advance(packedAfter)
		if err := env.Client().RaiseEvent(t.Context(), id, orders.EventPacked, nil); err != nil {
			t.Fatal(err)
		}
	}
	return awaited(t, env, id)
}

// placed starts an order.
func placed(t *testing.T, shop *orders.Shop, o orders.Order) (env *perduretest.Env, id string) {
	t.Helper()
	r := perdure.NewRegistry()
	orders.Register(r, shop)
	env = perduretest.New(t, r) // every turn replays the history
	id, err := env.Client().Start(t.Context(), "fulfil-order", o, client.WithInstanceID(o.ID))
	if err != nil {
		t.Fatal(err)
	}
	return env, id
}

// awaited waits until an order has ended.
func awaited(t *testing.T, env *perduretest.Env, id string) ended {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	e := ended{Status: s}
	if s.Status == client.StatusCompleted {
		if e.fulfilment, err = client.Result[orders.Fulfilment](s); err != nil {
			t.Fatal(err)
		}
	}
	e.read(t, env.Client(), id)
	return e
}

// read reads the history of an instance and of its sub-orchestrations.
func (e *ended) read(t *testing.T, c *client.Client, id string) {
	t.Helper()
	names := map[int64]string{}
	for event, err := range c.History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case history.ActivityScheduled:
			names[event.ID] = event.Name
			e.called = append(e.called, event.Name)
		case history.ActivityCancelRequested:
			e.cancelled = append(e.cancelled, names[event.SourceEventID]+": "+event.Reason)
		case history.SubOrchestrationScheduled:
			e.read(t, c, event.InstanceID)
		case history.CustomStatusSet:
			var status string
			if err := json.Unmarshal(event.CustomStatus, &status); err != nil {
				t.Fatal(err)
			}
			e.statuses = append(e.statuses, status)
		}
	}
}

// took returns the duration of the order.
func (e *ended) took() time.Duration { return e.UpdatedAt.Sub(e.CreatedAt) }
