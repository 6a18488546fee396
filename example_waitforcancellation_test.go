package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// payment charges a card. If the instance is cancelled during the charge, payment refunds the charge after the charge
// has ended.
func payment(ctx *perdure.OrchestrationContext, cents int) (_ string, err error) {
	charge := perdure.CallActivityByName[string](ctx, "charge", cents, perdure.WaitForCancellation())
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, end := charge.Await(ctx)
		if c, ok := errors.AsType[*perdure.CancelledError](end); ok && c.CancelOutcome == perdure.OutcomeNeverStarted {
			return nil // nothing to refund
		}
		_, err := perdure.CallActivityByName[string](ctx, "refund", cents).Await(ctx)
		return err
	})
	return charge.Await(ctx)
}

func ExampleWaitForCancellation() {
	r := perdure.NewRegistry()
	began := make(chan struct{})
	perdure.AddActivity(r, "charge", func(ctx context.Context, _ int) (string, error) {
		close(began)
		<-ctx.Done() // the instance was cancelled
		time.Sleep(50 * time.Millisecond)
		fmt.Println("charged") // the charge completes despite the cancel
		return "ch-1", nil
	})
	perdure.AddActivity(r, "refund", func(context.Context, int) (string, error) {
		fmt.Println("refunded")
		return "", nil
	})
	perdure.AddOrchestration(r, "payment", payment)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "payment", 4200))
	<-began
	if err := c.Cancel(ctx, id, "changed my mind"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(must(c.Wait(ctx, id)).Status)
	// Output:
	// charged
	// refunded
	// Cancelled
}
