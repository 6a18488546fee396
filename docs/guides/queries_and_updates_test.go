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

// pack adds scanned items to a parcel. The query "count" returns how often the parcel contains an item.
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

func booksIn(ctx context.Context, hub *client.Client, instanceID string) (n int, err error) {
	result, err := hub.Query(ctx, instanceID, "count", "book")
	if err != nil {
		return 0, err
	}
	return n, json.Unmarshal(result, &n)
}

// retryLater reports whether a failed query can succeed later.
func retryLater(err error) bool {
	failed, ok := errors.AsType[*client.QueryError](err)
	return ok && (failed.Code == client.QueryNotStarted || failed.Code == client.QueryTimedOut)
}

func TestQuery_beforeDuringAndAfterRun_returnsCount(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "ship", pack)
	env := perduretest.New(t, r)
	shipment, err := env.Client().Start(t.Context(), "ship", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := booksIn(t.Context(), env.Client(), shipment); !retryLater(err) {
		t.Errorf("before the first turn: %v", err)
	}
	for i, item := range []string{"book", "pen", "book"} {
		env.Advance(time.Second)
		if n, err := booksIn(t.Context(), env.Client(), shipment); err != nil || n != (i+1)/2 {
			t.Errorf("%d books after %d items, %v", n, i, err)
		}
		if err := env.Client().RaiseEvent(t.Context(), shipment, "scanned", item); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := env.Client().Wait(t.Context(), shipment); err != nil {
		t.Fatal(err)
	}
	if n, err := booksIn(t.Context(), env.Client(), shipment); err != nil || n != 2 {
		t.Errorf("%d books after the end, %v", n, err)
	}
	if _, err := booksIn(t.Context(), env.Client(), "unknown"); !errors.Is(err, client.ErrNotFound) || retryLater(err) {
		t.Errorf("unknown instance: %v", err)
	}
}

var errPickedUp = errors.New("the parcel was picked up")

// deliver delivers a parcel. The update "address" changes its address until it is picked up.
func deliver(ctx *perdure.OrchestrationContext, to string) (string, error) {
	pickedUp := false
	err := perdure.SetUpdateHandler(ctx, "address",
		func(ctx *perdure.OrchestrationContext, next string) (string, error) {
			label, err := perdure.CallActivity(ctx, printLabel, next).Await(ctx)
			if err != nil {
				return "", err
			}
			to = next
			return label, nil
		}, perdure.WithValidator(func(string) error {
			if pickedUp {
				return errPickedUp
			}
			return nil
		}))
	if err != nil {
		return "", err
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "pickedUp").Await(ctx); err != nil {
		return "", err
	}
	pickedUp = true
	if err := perdure.AwaitUpdateHandlers(ctx); err != nil { // wait for running handlers
		return "", err
	}
	return to, perdure.Sleep(ctx, 48*time.Hour)
}

func printLabel(_ context.Context, to string) (string, error) { return "label for " + to, nil }

// changeAddress can be repeated after a crash or a timeout: the same update ID is the same update.
func changeAddress(ctx context.Context, hub *client.Client, parcel, to string) (label string, err error) {
	result, err := hub.Update(ctx, parcel, "address", to, client.WithUpdateID("to "+to)) // JSON
	if err != nil {
		return "", err
	}
	return label, json.Unmarshal(result, &label)
}

// deliverTo starts the delivery if there is none, and changes its address.
func deliverTo(ctx context.Context, hub *client.Client, parcel, to string) (label string, started bool, err error) {
	result, started, err := hub.StartOrUpdate(ctx, "deliver", to, "address", to,
		client.WithInstanceID(parcel), client.WithIdempotencyKey("to "+to))
	if err != nil {
		return "", started, err
	}
	return label, started, json.Unmarshal(result, &label)
}

// updatePending reports whether an update can still return a result.
func updatePending(err error) bool {
	failed, ok := errors.AsType[*client.UpdateError](err)
	return ok && failed.Code == client.UpdatePending
}

func TestUpdate_beforeAndAfterPickup_acceptedOrRejected(t *testing.T) {
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
		label, err := changeAddress(t.Context(), env.Client(), parcel, "Main St 5")
		if err != nil || label != "label for Main St 5" {
			t.Errorf("%q, %v", label, err)
		}
	}
	if err := env.Client().RaiseEvent(t.Context(), parcel, "pickedUp", struct{}{}); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)
	if _, err := changeAddress(t.Context(), env.Client(), parcel, "High St 7"); err == nil || updatePending(err) {
		t.Errorf("after the pickup: %v", err)
	}
	status, err := env.Client().Wait(t.Context(), parcel)
	if err != nil || string(status.Output) != `"Main St 5"` {
		t.Errorf("%s, %v", status.Output, err)
	}
	if _, err := changeAddress(t.Context(), env.Client(), parcel, "High St 9"); !errors.Is(err, client.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	for range 2 {
		label, started, err := deliverTo(t.Context(), env.Client(), "new-parcel", "Main St 5")
		if err != nil || !started || label != "label for Main St 5" {
			t.Errorf("%q, %v, %v", label, started, err)
		}
	}
	if _, started, err := deliverTo(t.Context(), env.Client(), "new-parcel", "High St 7"); err != nil || started {
		t.Errorf("%v, %v", started, err)
	}
}
