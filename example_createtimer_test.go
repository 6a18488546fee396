package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// remind waits for the given time, which can be a year. While it waits, no function runs and nothing is kept in memory.
func remind(ctx *perdure.OrchestrationContext, after time.Duration) (string, error) {
	requested := ctx.Now() // not time.Now, which differs in each replay
	due, err := perdure.CreateTimer(ctx, after).Await(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("due after %v", due.Sub(requested)), nil
}

func ExampleCreateTimer() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "remind", remind)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "remind", 20*time.Millisecond))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: due after 20ms
}
