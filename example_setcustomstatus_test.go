package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
)

// Progress is a custom status. Any type can be used.
type Progress struct {
	Doing string `json:"doing"`
	Done  int    `json:"done"`
}

func bake(ctx *perdure.OrchestrationContext, loaves int) (int, error) {
	for n := range loaves {
		ctx.SetCustomStatus(Progress{Doing: "baking", Done: n})
		if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "baked").Await(ctx); err != nil {
			return n, err
		}
	}
	ctx.SetCustomStatus(Progress{Doing: "cooling", Done: loaves})
	return loaves, nil
}

func ExampleOrchestrationContext_SetCustomStatus() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "bake", bake)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "bake", 2))
	for range 2 {
		if err := c.RaiseEvent(ctx, id, "baked", nil); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s\n", must(c.Wait(ctx, id)).CustomStatus) // Status also returns it while the instance runs
	// Output: {"doing":"cooling","done":2}
}
