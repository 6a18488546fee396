package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// basket is the content of a shopping basket.
type basket struct {
	SKU      string
	Quantity int
}

// price looks up a price. It is short and can be repeated.
func price(_ context.Context, sku string) (int, error) {
	return map[string]int{"grinder": 5900, "jug": 1200}[sku], nil
}

// rate looks up a discount.
func rate(_ context.Context, quantity int) (int, error) { return min(quantity, 10), nil }

// offer calls both activities concurrently. The calls cost two writes and no queue message.
func offer(ctx *perdure.OrchestrationContext, b basket) (string, error) {
	each := perdure.CallActivity(ctx, price, b.SKU)
	discount := perdure.CallActivity(ctx, rate, b.Quantity, perdure.Inline())
	if err := perdure.WhenAll(ctx, each, discount); err != nil {
		return "", err
	}
	cents, _ := each.Await(ctx)
	percent, _ := discount.Await(ctx)
	return fmt.Sprintf("%d cents, %d %% off", cents*b.Quantity, percent), nil
}

func ExampleInline() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "price", price, perdure.Inline()) // all calls run inline
	perdure.AddActivity(r, "rate", rate)                     // only calls with Inline run inline
	perdure.AddOrchestration(r, "offer", offer)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "offer", basket{"grinder", 3}))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: 17700 cents, 3 % off
}
