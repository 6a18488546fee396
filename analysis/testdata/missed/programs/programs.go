// Command programs calls functions that it does not register. The linter does not find these calls.
package main

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

// Another program may run the worker of this queue.
var draw = perdure.DefineActivity[string, string]("draw", perdure.OnQueue("gpu"))

type activities struct {
	label perdure.ActivityRef[string, string]
}

func order(ctx *perdure.OrchestrationContext, id string) (string, error) {
	all := activities{label: perdure.DefineActivity[string, string]("label")}
	if _, err := all.label.Call(ctx, id).Await(ctx); err != nil {
		return "", err
	}
	// The update belongs to another orchestration.
	if _, err := perdure.CallUpdate[string](ctx, id, "pack", id, perdure.WithStart("order", id)).Await(ctx); err != nil {
		return "", err
	}
	return draw.Call(ctx, id).Await(ctx)
}

func packing(ctx *perdure.OrchestrationContext, id string) (string, error) {
	return id, perdure.SetUpdateHandler(ctx, "pack", func(_ *perdure.OrchestrationContext, id string) (string, error) { return id, nil })
}

func main() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "order", order)
	perdure.AddOrchestration(r, "packing", packing)
	lambdahandler.StartOrchestrator(r)
}
