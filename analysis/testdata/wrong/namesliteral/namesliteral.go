// Command namesliteral registers a literal, which does not register a function of another name.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

func forgotten(_ context.Context, parcel string) (string, error) { return parcel, nil }

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	return perdure.CallActivity(ctx, forgotten, parcel).Await(ctx)
}

func main() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ship", func(_ context.Context, parcel string) (string, error) { return parcel, nil })
	perdure.AddOrchestration(r, "deliver", deliver)
	lambdahandler.StartOrchestrator(r) // want `activity .*forgotten, called at .*, is not registered in this program`
}
