// Command namesvalue calls the registering function through a variable.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

func ship(_ context.Context, parcel string) (string, error)  { return parcel, nil }
func label(_ context.Context, parcel string) (string, error) { return parcel, nil }

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivityByName[string](ctx, "label", parcel).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, ship, parcel).Await(ctx)
}

func main() {
	r := perdure.NewRegistry()
	add := perdure.AddActivity[string, string]
	add(r, "ship", ship)
	add(r, "label", label)
	perdure.AddOrchestration(r, "deliver", deliver)
	lambdahandler.StartOrchestrator(r)
}
