package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Tally is the state that one execution passes to the next.
type Tally struct{ Sum, Left int }

// tally adds up numbers as they arrive. It continues as new after every ten numbers, so that its history stays short.
func tally(ctx *perdure.OrchestrationContext, t Tally) (int, error) {
	for range min(10, t.Left) {
		n, err := perdure.WaitForExternalEvent[int](ctx, "number").Await(ctx)
		if err != nil {
			return 0, err
		}
		t.Sum, t.Left = t.Sum+n, t.Left-1
	}
	if t.Left > 0 {
		return perdure.ContinueAsNew[int](ctx, t) // passes on the events that were not consumed
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
		if err := c.RaiseEvent(ctx, id, "number", n); err != nil {
			fmt.Println(err)
		}
	}
	status := must(c.Wait(ctx, id))
	fmt.Println(must(client.Result[int](status)), "in execution", status.ExecutionNumber)
	// Output: 300 in execution 3
}
