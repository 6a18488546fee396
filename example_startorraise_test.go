package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Whoever puts something into a cart says so to its instance. The first one starts that; a repetition with the same key is the same event.
func Example_startOrRaise() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "cart", func(ctx *perdure.OrchestrationContext, size int) (added []string, err error) {
		for len(added) < size {
			what, err := perdure.WaitForExternalEvent[string](ctx, "added").Await(ctx)
			if err != nil {
				return added, err
			}
			added = append(added, what)
		}
		return added, nil
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	for i, what := range []string{"tea", "tea", "cups"} {
		key := client.WithIdempotencyKey("added " + what)
		started := must(c.StartOrRaise(ctx, "cart", 2, "added", what, client.WithInstanceID("cart-ann"), key))
		fmt.Println(i, started)
	}
	fmt.Println(must(client.Result[[]string](must(c.Wait(ctx, "cart-ann")))))
	// Output:
	// 0 true
	// 1 true
	// 2 false
	// [tea cups]
}
