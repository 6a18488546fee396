package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func paint(_ context.Context, part string) (string, error) { return part + " painted", nil }

func dry(_ context.Context, part string) (string, error) { return part + " and dry", nil }

// finish calls two activities in sequence for each part, and processes all parts concurrently. Coroutines run one at a
// time, so they share variables without a lock.
func finish(ctx *perdure.OrchestrationContext, parts []string) ([]string, error) {
	finished := make([]string, len(parts))
	var branches []perdure.Awaitable
	for i, part := range parts {
		branches = append(branches, perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
			painted, err := perdure.CallActivity(ctx, paint, part).Await(ctx)
			if err == nil {
				finished[i], err = perdure.CallActivity(ctx, dry, painted).Await(ctx)
			}
			if err != nil {
				finished[i] = err.Error() // to return an error, use Async
			}
		}))
	}
	return finished, perdure.WhenAll(ctx, branches...)
}

func ExampleGo() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "paint", paint)
	perdure.AddActivity(r, "dry", dry)
	perdure.AddOrchestration(r, "finish", finish)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "finish", []string{"frame", "wheel"}))
	fmt.Println(must(client.Result[[]string](must(c.Wait(ctx, id)))))
	// Output: [frame painted and dry wheel painted and dry]
}
