package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// invoiceFixed is the fixed code.
var invoiceFixed atomic.Bool

func invoice(ctx *perdure.OrchestrationContext, amount int) (string, error) {
	receipt, err := perdure.CallActivityByName[string](ctx, "charge", amount).Await(ctx)
	if err != nil {
		return "", err
	}
	if !invoiceFixed.Load() {
		return "", errors.New("the invoice has no receipt")
	}
	return "invoice for " + receipt, nil
}

// An orchestration failed because it could not process the result of an activity. After the code is fixed, the instance
// restarts from that event, and the activity does not run again.
func Example_restartFromAnEvent() {
	r := perdure.NewRegistry()
	charged := 0
	perdure.AddActivity(r, "charge", func(context.Context, int) (string, error) {
		charged++
		return fmt.Sprintf("receipt %d", charged), nil
	})
	perdure.AddOrchestration(r, "invoice", invoice)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	failed := must(c.Start(ctx, "invoice", 7, client.WithInstanceID("order-7")))
	fmt.Println(must(c.Wait(ctx, failed)).Status)

	var from int64
	for e, err := range c.History(ctx, failed) {
		if err != nil {
			fmt.Println(err)
		}
		if e.Kind == history.ActivityCompleted {
			from = e.ID
		}
	}
	invoiceFixed.Store(true)
	again := must(c.Restart(ctx, failed, client.FromEvent(from), client.WithInstanceID("order-7-again")))
	s := must(c.Wait(ctx, again))
	fmt.Println(again, s.Status, must(client.Result[string](s)))
	// Output:
	// Failed
	// order-7-again Completed invoice for receipt 1
}
