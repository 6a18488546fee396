package perdure_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
)

var errNoSeat = errors.New("the opera is sold out")

// trip books a flight and a hotel. The opera is sold out, so both bookings are cancelled in reverse order.
func trip(ctx *perdure.OrchestrationContext, city string) (_ string, err error) {
	flight := "book a flight to " + city
	_, err = perdure.CallActivityByName[string](ctx, "print", flight, perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivityByName[string](ctx, "print", "cancel the flight").Await(ctx)
		return err
	})
	if err != nil { // the flight can be booked despite the error
		return "", err
	}
	_, err = perdure.CallActivityByName[string](ctx, "print", "book a hotel", perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivityByName[string](ctx, "print", "cancel the hotel").Await(ctx)
		return err
	})
	return "", cmp.Or(err, errNoSeat)
}

func ExampleCompensate() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "print", func(_ context.Context, what string) (string, error) {
		fmt.Println(what)
		return what, nil
	})
	perdure.AddOrchestration(r, "trip", trip)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	status := must(c.Wait(ctx, must(c.Start(ctx, "trip", "Milan"))))
	fmt.Println(status.Status, "because", status.Failure.Message)
	// Output:
	// book a flight to Milan
	// book a hotel
	// cancel the hotel
	// cancel the flight
	// Failed because the opera is sold out
}
