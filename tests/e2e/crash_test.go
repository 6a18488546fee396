package e2e_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/e2e/app"
)

// Every function process is killed while an order has a scheduled activity. The order still completes.
func TestCrash_allFunctionsKilled_orderCompletes(t *testing.T) {
	o := firstOrder(t)
	instance, err := hub.client.Start(t.Context(), "fulfil-order", o, client.WithInstanceID(id(t, 1)))
	if err != nil {
		t.Fatal(err)
	}
	// the event is stored until the order awaits it
	if err := hub.client.RaiseEvent(t.Context(), instance, orders.EventPacked, nil); err != nil {
		t.Fatal(err)
	}
	await(t, instance, history.ActivityScheduled)
	if n := killFunctions(t); n == 0 {
		t.Fatal("found no function process to kill")
	}
	s, err := hub.client.Wait(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := client.Result[orders.Fulfilment](s); err != nil || f.Status != orders.StatusDelivered {
		t.Errorf("got order %+v, error %v", f, err)
	}
	valid(t, hub.client, instance)
}

// Processes are killed repeatedly at arbitrary points while instances run.
func TestCrash_functionsKilledRepeatedly_instancesComplete(t *testing.T) {
	shortrun.Skip(t)
	const instances, crashes = 6, 5
	for n := range instances {
		in := app.Naps{Count: 8, Each: 150 * time.Millisecond}
		if _, err := hub.client.Start(t.Context(), "naps", in, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	killed := 0
	// fewer processes at a time on LocalStack
	for round := 0; round < crashes || killed < crashes && round < 4*crashes; round++ {
		<-time.After(400 * time.Millisecond) // an arbitrary moment
		killed += killFunctions(t)
	}
	for n := range instances {
		s, err := hub.client.Wait(t.Context(), id(t, n))
		if err != nil {
			t.Fatal(err)
		}
		if count, err := client.Result[int](s); err != nil || count != 8 {
			t.Errorf("instance %d: got %d naps, error %v", n, count, err)
		}
		valid(t, hub.client, id(t, n))
	}
	t.Logf("%d processes were killed", killed)
	if killed < crashes {
		t.Errorf("got %d killed processes", killed)
	}
}

func firstOrder(t *testing.T) orders.Order {
	t.Helper()
	b, err := os.ReadFile("../../examples/orders/orders.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []orders.Order
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// await polls the history until it has an event of a kind.
func await(t *testing.T, instance string, kind history.Kind) {
	t.Helper()
	for range time.Tick(20 * time.Millisecond) {
		for e, err := range hub.client.History(t.Context(), instance) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == kind {
				return
			}
		}
	}
}

// valid checks that a history is a log: without gaps, with one end, and with each ID settled at most once. A cancelled
// activity may also have a cancel request.
func valid(t *testing.T, c *client.Client, instance string) []history.Event {
	t.Helper()
	var events []history.Event
	settled, requested := map[int64]bool{}, map[int64]bool{}
	for e, err := range c.History(t.Context(), instance) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		if !e.Kind.HasSource() {
			continue
		}
		by := settled
		if e.Kind == history.ActivityCancelRequested || e.Kind == history.SubOrchestrationCancelRequested {
			by = requested
		}
		for _, id := range e.Sources() {
			if by[id] {
				t.Errorf("%s: event %d is settled twice", instance, id)
			}
			by[id] = true
		}
	}
	if _, err := history.Concat(events); err != nil {
		t.Errorf("%s: got error %v", instance, err)
	}
	return events
}
