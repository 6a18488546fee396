package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// BankError is an error type that a retry policy can list as not retryable.
type BankError struct{ Text string }

func (e *BankError) Error() string { return e.Text }

// withdraw fails twice with a network error, and then with an error of the bank.
func withdraw(ctx context.Context, cents int) (string, error) {
	if perdure.ActivityInfoFrom(ctx).Attempt < 3 {
		return "", errors.New("the network is down")
	}
	return "", &BankError{fmt.Sprintf("%d cents are not available", cents)}
}

// payOut retries network errors and does not retry errors of the bank.
func payOut(ctx *perdure.OrchestrationContext, cents int) (string, error) {
	_, err := perdure.CallActivity(ctx, withdraw, cents, perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts:            10,
		InitialInterval:        10 * time.Millisecond,
		NonRetryableErrorTypes: []string{"BankError"},
	})).Await(ctx)
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return fmt.Sprintf("%s: %s", failed.Type, failed.Message), nil
	}
	return "paid", err
}

func ExampleWithRetry_nonRetryable() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "withdraw", withdraw)
	perdure.AddOrchestration(r, "pay-out", payOut)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "pay-out", 500))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: BankError: 500 cents are not available
}
