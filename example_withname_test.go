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
	late := perdure.CreateTimer(ctx, within, perdure.WithTimerName("payment window"))
	first, err := perdure.Select(ctx, paid, late)
	if err != nil || first == 0 {
		return "paid", err
	}
	return "reminded", nil
}

func ExampleWithTimerName() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "settle", settle)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "settle", 24*time.Hour))
	must(c.WaitForStart(ctx, id))
	for _, x := range must(c.Pending(ctx, id, "", 0)).Items {
		fmt.Println(x.Kind, x.Name)
	}
	if err := c.RaiseEvent(ctx, id, "paid", 12); err != nil {
		panic(err)
	}
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Unordered output:
	// timer payment window
	// external_event paid
	// paid
}
