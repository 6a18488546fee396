// Command namesreference calls a function that is registered by an activity reference.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

var label = perdure.DefineActivity[string, string]("label")

func makeLabel(_ context.Context, parcel string) (string, error) { return parcel, nil }

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	return perdure.CallActivity(ctx, makeLabel, parcel).Await(ctx)
}

func main() {
	r := perdure.NewRegistry()
	label.Register(r, makeLabel)
	perdure.AddOrchestration(r, "deliver", deliver)
	lambdahandler.StartOrchestrator(r)
}
