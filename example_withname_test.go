package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// settle waits for a payment until the invoice is due. The name of the timer appears in the pending tasks of the
// instance and in its trace.
func settle(ctx *perdure.OrchestrationContext, within time.Duration) (string, error) {
	paid := perdure.WaitForExternalEvent[int](ctx, "paid")
	late := perdure.CreateTimer(ctx, within, perdure.WithName("payment window"))
	first, err := perdure.Select(ctx, paid, late)
	if err != nil || first == 0 {
		return "paid", err
	}
	return "reminded", nil
}

func ExampleWithName() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "settle", settle)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "settle", 24*time.Hour))
	must(c.WaitForStart(ctx, id))
	for _, x := range must(c.Pending(ctx, id, "", 0)).Items {
		fmt.Println(x.What, x.Name)
	}
	if err := c.Raise(ctx, id, "paid", 12); err != nil {
		panic(err)
	}
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Unordered output:
	// timer payment window
	// external_event paid
	// paid
}
