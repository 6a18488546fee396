package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Approval is the data of an event.
type Approval struct {
	By string `json:"by"`
}

// publish waits until two people have approved.
func publish(ctx *perdure.OrchestrationContext, title string) (string, error) {
	first, err := perdure.WaitForExternalEvent[Approval](ctx, "approved").Await(ctx)
	if err != nil {
		return "", err
	}
	second, err := perdure.WaitForExternalEvent[Approval](ctx, "approved").Await(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q approved by %s and %s", title, first.By, second.By), nil
}

// Events are buffered until the orchestration waits for them, so the order of sender and receiver does not matter.
func ExampleWaitForExternalEvent_raise() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "publish", publish)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "publish", "Durable Go"))
	for _, by := range []string{"Ada", "Grace"} {
		if err := c.RaiseEvent(ctx, id, "approved", Approval{By: by}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: "Durable Go" approved by Ada and Grace
}
