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
