package guides_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func price(_ context.Context, item string) (int, error) {
	if item == "" {
		return 0, errors.New("item has no name")
	}
	return 10 * len(item), nil
}

func label(_ context.Context, parcel string) (string, error) { return "to " + parcel, nil }

func priceAll(ctx *perdure.OrchestrationContext, items []string) ([]int, error) {
	var prices []*perdure.Future[int]
	for _, item := range items {
		prices = append(prices, perdure.CallActivity(ctx, price, item))
	}
	return perdure.AwaitAll(ctx, prices)
}

func shipAll(ctx *perdure.OrchestrationContext, parcels []string) (int, error) {
	shipped, err := perdure.Map(ctx, parcels, ship, perdure.MaxConcurrency(10), perdure.ToleratedFailures(2))
	if err != nil {
		return 0, err // the third failure: running items are cancelled, the rest never start
	}
	for i, s := range shipped {
		if s.Err != nil {
			ctx.Logger().Warn("shipping failed", "parcel", parcels[i], "error", s.Err)
		}
	}
	return len(shipped.Values()), nil
}

func ship(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func priceFor(ctx *perdure.OrchestrationContext, o struct{ Tenant, Item string }) (int, error) {
	return perdure.CallActivity(ctx, price, o.Item, perdure.WithFairnessKey(o.Tenant)).Await(ctx)
}

func TestFanOut_validItems_returnsResults(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "price", price)
	perdure.AddActivity(r, "label", label)
	perdure.AddOrchestration(r, "price-all", priceAll)
	perdure.AddOrchestration(r, "ship-all", shipAll)
	perdure.AddOrchestration(r, "price-for", priceFor)
	env := perduretest.New(t, r)

	if got := run[int](t, env, "price-for", map[string]string{"Tenant": "acme", "Item": "bc"}); got != 20 {
		t.Error(got)
	}
	if got := run[[]int](t, env, "price-all", []string{"a", "bc"}); len(got) != 2 || got[1] != 20 {
		t.Error(got)
	}
	if got := run[int](t, env, "ship-all", []string{"a", "", "bc"}); got != 2 {
		t.Error(got)
	}
}

// run starts an orchestration and returns its result.
func run[T any](t *testing.T, env *perduretest.Env, name string, input any) T {
	t.Helper()
	id, err := env.Client().Start(t.Context(), name, input)
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.Result[T](s)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
