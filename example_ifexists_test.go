package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// A customer places an order again while the earlier order still waits for the payment. The earlier instance is
// terminated and purged, and the new instance gets its ID.
func Example_ifExists() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, what string) (string, error) {
		_, err := perdure.WaitForExternalEvent[bool](ctx, "paid").Await(ctx)
		return what, err
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := client.WithInstanceID("order-7")
	must(c.Start(ctx, "order", "tea", id))
	must(c.Start(ctx, "order", "coffee", id, client.IfExists(client.UseExisting)))
	must(c.Start(ctx, "order", "cocoa", id, client.IfExists(client.Replace)))
	if err := c.RaiseEvent(ctx, "order-7", "paid", true); err != nil {
		fmt.Println(err)
	}
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, "order-7")))))
	// Output:
	// cocoa
}
