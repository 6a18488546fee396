package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Transfer is a payment through a bank that does not support idempotency keys.
type Transfer struct {
	Account string
	Cents   int
}

func transfer(_ context.Context, t Transfer) (string, error) {
	return fmt.Sprintf("%d to %s", t.Cents, t.Account), nil
}

// isBooked reports whether a transfer is on the bank's statement.
func isBooked(context.Context, Transfer) (bool, error) { return false, nil }

// pay transfers money once. If the result of a transfer is unknown, pay checks the statement before it tries again.
func pay(ctx *perdure.OrchestrationContext, t Transfer) (string, error) {
	for {
		paid, err := perdure.CallActivity(ctx, transfer, t, perdure.AtMostOnce()).Await(ctx)
		if _, interrupted := errors.AsType[*perdure.InterruptedError](err); !interrupted {
			return paid, err
		}
		if err := perdure.Sleep(ctx, time.Hour); err != nil { // until the statement shows the transfer
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
