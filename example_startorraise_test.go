package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Each call sends an item to the instance of a cart. The first call starts the instance. A repeated call with the same
// key has no effect.
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
		started := must(c.StartOrRaiseEvent(ctx, "cart", 2, "added", what, client.WithInstanceID("cart-ann"), key))
		fmt.Println(i, started)
	}
	fmt.Println(must(client.Result[[]string](must(c.Wait(ctx, "cart-ann")))))
	// Output:
	// 0 true
	// 1 true
	// 2 false
	// [tea cups]
}
