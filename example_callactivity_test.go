package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// lookUpPrice is an activity. It is ordinary code that can call services and databases.
func lookUpPrice(_ context.Context, article string) (int, error) {
	return 100 * len(article), nil
}

// quote is an orchestration. It calls activities and waits for their results.
func quote(ctx *perdure.OrchestrationContext, article string) (string, error) {
	cents, err := perdure.CallActivity(ctx, lookUpPrice, article).Await(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %d cents", article, cents), nil
}

func ExampleCallActivity() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "look-up-price", lookUpPrice)
	perdure.AddOrchestration(r, "quote", quote)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "quote", "kettle"))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: kettle: 600 cents
}
