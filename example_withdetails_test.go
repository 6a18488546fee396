package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Decline describes why a bank declined a card.
type Decline struct {
	Code int
	Left int // cents
}

// debit fails with details.
func debit(_ context.Context, cents int) (string, error) {
	return "", perdure.WithErrorDetails(perdure.NonRetryable(errors.New("declined")),
		Decline{Code: 51, Left: cents / 2})
}

// payAnyway reads the details of the error. Its caller can also read the details.
func payAnyway(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	paid, err := perdure.CallActivity(ctx, debit, cents).Await(ctx)
	if declined, why := perdure.ErrorDetails[Decline](err); why == nil && declined.Left >= cents {
		return "paid later", nil
	}
	return paid, err
}

func ExampleWithErrorDetails() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "debit", debit)
	perdure.AddOrchestration(r, "pay-anyway", payAnyway)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "pay-anyway", 500))
	_, err := client.Result[string](must(c.Wait(ctx, id)))
	fmt.Println(perdure.ErrorDetails[Decline](err))
	// Output: {51 250} <nil>
}
