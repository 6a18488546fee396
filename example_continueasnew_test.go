package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Tally is what one execution leaves to the next: there is no other memory.
type Tally struct{ Sum, Left int }

// tally adds up numbers as they come. After each ten it begins anew, so that its history stays short however many come.
func tally(ctx *perdure.OrchestrationContext, t Tally) (int, error) {
	for range min(10, t.Left) {
		n, err := perdure.WaitForExternalEvent[int](ctx, "number").Await(ctx)
		if err != nil {
			return 0, err
		}
		t.Sum, t.Left = t.Sum+n, t.Left-1
	}
	if t.Left > 0 {
		return perdure.ContinueAsNew[int](ctx, t) // events that it has not consumed go on with it
	}
	return t.Sum, nil
}

func ExampleContinueAsNew() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "tally", tally)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "tally", Tally{Left: 25}))
	for n := range 25 {
		if err := c.Raise(ctx, id, "number", n); err != nil {
			fmt.Println(err)
		}
	}
	status := must(c.Wait(ctx, id))
	fmt.Println(must(client.Result[int](status)), "in execution", status.ExecutionNumber)
	// Output: 300 in execution 3
}
