// Command programs calls what it does not register, in ways that the linter does not find.
package main

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

// Its worker may be one of another program.
var draw = perdure.DefineActivity[string, string]("draw", perdure.OnQueue("gpu"))

type activities struct {
	label perdure.ActivityRef[string, string]
}

func order(ctx *perdure.OrchestrationContext, id string) (string, error) {
	all := activities{label: perdure.DefineActivity[string, string]("label")}
	if _, err := all.label.Call(ctx, id).Await(ctx); err != nil {
		return "", err
	}
	// It is an update of another orchestration.
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
