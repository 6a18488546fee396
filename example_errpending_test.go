package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// An activity requests an approval. The response completes the activity within a day.
func ExampleErrPending() {
	tokens := make(chan string, 1)
	approve := func(ctx context.Context, order string) (bool, error) {
		tokens <- perdure.ActivityInfoFrom(ctx).CompletionToken // in production, send the token by mail
		return false, perdure.ErrPending
	}

	r := perdure.NewRegistry()
	perdure.AddActivity(r, "approve", approve)
	perdure.AddOrchestration(r, "ship", func(ctx *perdure.OrchestrationContext, order string) (string, error) {
		approved, err := perdure.CallActivityByName[bool](ctx, "approve", order,
			perdure.WithStartToCloseTimeout(24*time.Hour)).Await(ctx)
		if err != nil || !approved {
			return "kept", err
		}
		return "shipped", nil
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "ship", "order-7"))
	if err := c.CompleteActivity(ctx, <-tokens, true); err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(must(c.Wait(ctx, id)).Output))
	// Output: "shipped"
}
