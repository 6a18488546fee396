package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Reading is a measurement of a sensor.
type Reading struct {
	Celsius float64 `json:"celsius"`
}

// watchBoiler waits for readings until one is too hot.
func watchBoiler(ctx *perdure.OrchestrationContext, limit float64) (float64, error) {
	for {
		r, err := perdure.WaitForExternalEvent[Reading](ctx, "reading").Await(ctx)
		if err != nil || r.Celsius > limit {
			return r.Celsius, err
		}
	}
}

// report sends a reading to the orchestration that watches a boiler, and starts the orchestration if it does not exist.
func report(ctx *perdure.OrchestrationContext, celsius float64) (string, error) {
	const boiler = "boiler-7"
	_, err := perdure.RaiseEvent(ctx, boiler, "reading", Reading{celsius}).Await(ctx)
	if !errors.Is(err, perdure.ErrInstanceNotFound) {
		return "reported", err
	}
	if _, err := perdure.StartOrchestration(ctx, "watch-boiler", 90.0, perdure.WithInstanceID(boiler)); err != nil {
		return "", err
	}
	_, err = perdure.RaiseEvent(ctx, boiler, "reading", Reading{celsius}).Await(ctx) // the instance exists now
	return "reported to a new watch", err
}

func ExampleRaiseEvent() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "watch-boiler", watchBoiler)
	perdure.AddOrchestration(r, "report", report)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	for _, celsius := range []float64{20, 60, 95} {
		id := must(c.Start(ctx, "report", celsius))
		fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	}
	fmt.Println("too hot:", must(client.Result[float64](must(c.Wait(ctx, "boiler-7")))))
	// Output:
	// reported to a new watch
	// reported
	// reported
	// too hot: 95
}
