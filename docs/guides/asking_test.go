package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// pack takes items as they are scanned, and answers what is in the parcel.
func pack(ctx *perdure.OrchestrationContext, items int) (int, error) {
	parcel := map[string]int{}
	err := perdure.SetQueryHandler(ctx, "count", func(item string) (int, error) { return parcel[item], nil })
	if err != nil {
		return 0, err
	}
	for range items {
		item, err := perdure.WaitForExternalEvent[string](ctx, "scanned").Await(ctx)
		if err != nil {
			return 0, err
		}
		parcel[item]++
	}
	return len(parcel), nil
}

func booksIn(ctx context.Context, hub *client.Client, shipment string) (n int, err error) {
	answer, err := hub.Query(ctx, shipment, "count", "book")
	if err != nil {
		return 0, err
	}
	return n, json.Unmarshal(answer, &n)
}

// countOrWait reports whether a query that has no answer may have one later.
func countOrWait(err error) (later bool) {
	refused, ok := errors.AsType[*client.QueryError](err)
	return ok && (refused.Code == client.QueryNotBegun || refused.Code == client.QueryTimedOut)
}

func TestAShipmentIsAsked(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "ship", pack)
	env := perduretest.New(t, r)
	shipment, err := env.Client().Start(t.Context(), "ship", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := booksIn(t.Context(), env.Client(), shipment); !countOrWait(err) {
		t.Errorf("before its first turn: %v", err)
	}
	for i, item := range []string{"book", "pen", "book"} {
		env.Advance(time.Second)
		if n, err := booksIn(t.Context(), env.Client(), shipment); err != nil || n != (i+1)/2 {
			t.Errorf("%d books after %d items, %v", n, i, err)
		}
		if err := env.Client().Raise(t.Context(), shipment, "scanned", item); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := env.Client().Wait(t.Context(), shipment); err != nil {
		t.Fatal(err)
	}
	if n, err := booksIn(t.Context(), env.Client(), shipment); err != nil || n != 2 {
		t.Errorf("%d books once it is over, %v", n, err)
	}
	if _, err := booksIn(t.Context(), env.Client(), "nobody"); !errors.Is(err, client.ErrNotFound) || countOrWait(err) {
		t.Errorf("of no shipment: %v", err)
	}
}

var errLeft = errors.New("the parcel has left")

// deliver carries a parcel to an address, which may be changed until it has left.
func deliver(ctx *perdure.OrchestrationContext, to string) (string, error) {
	left := false
	err := perdure.HandleUpdate(ctx, "address", func(ctx *perdure.OrchestrationContext, next string) (string, error) {
		label, err := perdure.CallActivity(ctx, printLabel, next).Await(ctx)
		if err != nil {
			return "", err
		}
		to = next
		return label, nil
	}, perdure.ValidateUpdate(func(string) error {
		if left {
			return errLeft
		}
		return nil
	}))
	if err != nil {
		return "", err
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "pickedUp").Await(ctx); err != nil {
		return "", err
	}
	left = true
	if err := perdure.UpdatesDone(ctx); err != nil { // the label that is being printed
		return "", err
	}
	return to, perdure.Sleep(ctx, 48*time.Hour)
}

func printLabel(_ context.Context, to string) (string, error) { return "label for " + to, nil }

// move sends a parcel elsewhere. Sent again with the same id, after a crash or a timeout, it is the same update.
func move(ctx context.Context, hub *client.Client, parcel, to string) (label string, err error) {
	answer, err := hub.Update(ctx, parcel, "address", to, client.WithUpdateID("to "+to))
	if err != nil {
		return "", err
	}
	return label, json.Unmarshal(answer, &label)
}

// moveTo is move for a parcel that may not have left the shop: who is the first to speak of it has it delivered.
func moveTo(ctx context.Context, hub *client.Client, parcel, to string) (label string, first bool, err error) {
	answer, first, err := hub.StartOrUpdate(ctx, "deliver", to, "address", to, client.WithInstanceID(parcel), client.WithIdempotencyKey("to "+to))
	if err != nil {
		return "", first, err
	}
	return label, first, json.Unmarshal(answer, &label)
}

// underWay reports whether an update without an answer may have one later.
func underWay(err error) bool {
	ended, ok := errors.AsType[*client.UpdateError](err)
	return ok && ended.Code == client.UpdatePending
}

func TestAParcelIsUpdated(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "deliver", deliver)
	perdure.AddActivity(r, "printLabel", printLabel)
	env := perduretest.New(t, r)
	parcel, err := env.Client().Start(t.Context(), "deliver", "Main St 1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if label, err := move(t.Context(), env.Client(), parcel, "Main St 5"); err != nil || label != "label for Main St 5" {
			t.Errorf("%q, %v", label, err)
		}
	}
	if err := env.Client().Raise(t.Context(), parcel, "pickedUp", struct{}{}); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)
	if _, err := move(t.Context(), env.Client(), parcel, "High St 7"); err == nil || underWay(err) {
		t.Errorf("once it has left: %v", err)
	}
	status, err := env.Client().Wait(t.Context(), parcel)
	if err != nil || string(status.Output) != `"Main St 5"` {
		t.Errorf("%s, %v", status.Output, err)
	}
	if _, err := move(t.Context(), env.Client(), parcel, "High St 9"); !errors.Is(err, client.ErrTerminal) {
		t.Errorf("once it is over: %v", err)
	}
	for range 2 {
		if label, first, err := moveTo(t.Context(), env.Client(), "unheard of", "Main St 5"); err != nil || !first || label != "label for Main St 5" {
			t.Errorf("%q, %v, %v", label, first, err)
		}
	}
	if _, first, err := moveTo(t.Context(), env.Client(), "unheard of", "High St 7"); err != nil || first {
		t.Errorf("%v, %v", first, err)
	}
}
