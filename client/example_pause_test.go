package client_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// This example pauses an order for inspection. Events that arrive in the meantime are stored, and the code receives
// them after Resume.
func ExampleClient_Pause() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, _ any) (string, error) {
		paid, err := perdure.WaitForExternalEvent[string](ctx, "paid").Await(ctx)
		if err != nil {
			return "", err
		}
		by, err := perdure.WaitForExternalEvent[string](ctx, "collected").Await(ctx)
		return paid + ", " + by, err
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id, err := c.Start(ctx, "order", nil, client.WithInstanceID("order-7"))
	must(err)

	must(c.Pause(ctx, id, "the address is odd"))
	paused := untilIs(ctx, c, id, client.StatusPaused)
	fmt.Println(paused.Status, "because", paused.Paused.Message)
	must(c.RaiseEvent(ctx, id, "paid", "by card"))
	must(c.RaiseEvent(ctx, id, "collected", "by Ada"))

	must(c.Resume(ctx, id, "it is right"))
	s, err := c.Wait(ctx, id)
	must(err)
	fmt.Println(client.Result[string](s))
	// Output:
	// Paused because the address is odd
	// by card, by Ada <nil>
}
