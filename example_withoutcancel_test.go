package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// journey books a seat and waits for a confirmation. If the instance is cancelled, the wait returns a *CancelledError,
// and journey releases the seat in a context that is not cancelled.
func journey(ctx *perdure.OrchestrationContext, seat string) (string, error) {
	if _, err := perdure.CallActivityByName[string](ctx, "print", "book "+seat).Await(ctx); err != nil {
		return "", err
	}
	ctx.SetCustomStatus("booked")
	if _, err := perdure.WaitForExternalEvent[any](ctx, "confirmed").Await(ctx); err != nil {
		safe := perdure.WithoutCancel(ctx)
		_, undone := perdure.CallActivityByName[string](safe, "print", "release "+seat).Await(safe)
		return "", errors.Join(err, undone) // if undone is nil, the instance ends as Cancelled
	}
	return "booked " + seat, nil
}

func ExampleWithoutCancel() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "print", func(_ context.Context, what string) (string, error) {
		fmt.Println(what)
		return what, nil
	})
	perdure.AddOrchestration(r, "journey", journey)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "journey", "12A"))
	for look := time.Tick(time.Millisecond); string(must(c.Status(ctx, id)).CustomStatus) != `"booked"`; <-look {
	}
	if err := c.Cancel(ctx, id, "the train is cancelled"); err != nil {
		fmt.Println(err)
	}
	status := must(c.Wait(ctx, id))
	fmt.Println(status.Status, "because", status.Failure.Message)
	// Output:
	// book 12A
	// release 12A
	// Cancelled because the train is cancelled
}
