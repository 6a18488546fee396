package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Transfer is money that goes to an account, through a bank that knows no idempotency keys.
type Transfer struct {
	Account string
	Cents   int
}

func transfer(_ context.Context, t Transfer) (string, error) {
	return fmt.Sprintf("%d to %s", t.Cents, t.Account), nil
}

// isBooked looks whether a transfer is on the bank's statement.
func isBooked(context.Context, Transfer) (bool, error) { return false, nil }

// pay transfers money, and never twice: where nobody knows whether that was done it looks, and pays again only if it was not.
func pay(ctx *perdure.OrchestrationContext, t Transfer) (string, error) {
	for {
		paid, err := perdure.CallActivity(ctx, transfer, t, perdure.AtMostOnce()).Await(ctx)
		if _, interrupted := errors.AsType[*perdure.InterruptedError](err); !interrupted {
			return paid, err
		}
		if err := perdure.Sleep(ctx, time.Hour); err != nil { // until it would be on the statement
			return "", err
		}
		switch booked, err := perdure.CallActivity(ctx, isBooked, t).Await(ctx); {
		case err != nil:
			return "", err
		case booked:
			return "found on the statement", nil
		}
	}
}

func ExampleAtMostOnce() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "transfer", transfer)
	perdure.AddActivity(r, "is-booked", isBooked)
	perdure.AddOrchestration(r, "pay", pay)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "pay", Transfer{"17", 500}))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: 500 to 17
}
