// Command namesspread registers the results of another call.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

func ship(_ context.Context, parcel string) (string, error) { return parcel, nil }

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	return perdure.CallActivityByName[string](ctx, "ship", parcel).Await(ctx)
}

func parts(r *perdure.Registry) (*perdure.Registry, string, func(context.Context, string) (string, error)) {
	return r, "ship", ship
}

func main() {
	r := perdure.NewRegistry()
	perdure.AddActivity(parts(r))
	perdure.AddOrchestration(r, "deliver", deliver)
	lambdahandler.StartOrchestrator(r)
}
