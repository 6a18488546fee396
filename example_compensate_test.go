package perdure_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
)

var errNoSeat = errors.New("no seat is left at the opera")

// trip books a flight and a hotel. The opera is sold out, so both are given back: the last first.
func trip(ctx *perdure.OrchestrationContext, city string) (_ string, err error) {
	_, err = perdure.CallActivityByName[string](ctx, "tell", "book a flight to "+city, perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivityByName[string](ctx, "tell", "give the flight back").Await(ctx)
		return err
	})
	if err != nil { // it may be booked all the same
		return "", err
	}
	_, err = perdure.CallActivityByName[string](ctx, "tell", "book a hotel", perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivityByName[string](ctx, "tell", "give the hotel back").Await(ctx)
		return err
	})
	return "", cmp.Or(err, errNoSeat)
}

func ExampleCompensate() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "tell", func(_ context.Context, what string) (string, error) {
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
	// give the hotel back
	// give the flight back
	// Failed because no seat is left at the opera
}
