// Command namesreferences calls activity references that it does not register, and unknown updates.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

var (
	label = perdure.DefineActivity[string, string]("label")
	weigh = perdure.DefineActivity[string, int]("weigh")
)

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := label.Call(ctx, parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallActivityByName[int](ctx, "weigh", parcel).Await(ctx); err != nil {
		return "", err
	}
	pack := perdure.DefineActivity[string, string]("pack")
	if _, err := pack.Call(ctx, parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallActivityByName[string](ctx, "measure", 7).Await(ctx); err != nil { // want `activity "measure", called at .*, gets a number but takes a string.*\[misfit\]`
		return "", err
	}
	return perdure.CallUpdate[string](ctx, "7", "add", parcel, perdure.WithStart("NoSuch", parcel)).Await(ctx)
}

func main() {
	r := perdure.NewRegistry()
	measure := perdure.DefineActivity[string, string]("measure")
	measure.Register(r, func(_ context.Context, text string) (string, error) { return text, nil })
	perdure.AddOrchestration(r, "deliver", deliver)
	lambdahandler.StartOrchestrator(r) // want `activity "label", called at .*, is not registered in this program: .* \[unregistered\]` `activity "weigh", called at` `activity "pack", called at` `orchestration "NoSuch", called at` `update "add", called at`
}
