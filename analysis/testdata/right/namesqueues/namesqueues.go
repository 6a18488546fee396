// Command namesqueues calls activity references that it registers indirectly, or that other programs register.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

var (
	label = perdure.DefineActivity[string, string]("label")
	weigh = perdure.DefineActivity[string, string]("weigh")
	// The worker of another program serves this queue.
	draw = perdure.DefineActivity[string, string]("draw", perdure.OnQueue("gpu"))
	//perdure:ignore unregistered a worker in Python registers the activity
	classify = perdure.DefineActivity[string, string]("classify")
	measure  = perdure.DefineActivity[string, string]("measure")
)

type activities struct {
	cut perdure.ActivityRef[string, string]
}

func echo(_ context.Context, text string) (string, error) { return text, nil }

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	mine := activities{cut: perdure.DefineActivity[string, string]("cut")}
	for _, call := range []*perdure.Future[string]{
		label.Call(ctx, parcel), weigh.Call(ctx, parcel), draw.Call(ctx, parcel), classify.Call(ctx, parcel), measure.Call(ctx, parcel), mine.cut.Call(ctx, parcel),
		perdure.CallActivityByName[string](ctx, "cut", parcel), perdure.CallActivityByName[string](ctx, "draw", parcel),
	} {
		if _, err := call.Await(ctx); err != nil {
			return "", err
		}
	}
	name := parcel // the name of the update is unknown
	again := perdure.WithStart("deliver", parcel)
	return perdure.CallUpdate[string](ctx, "7", name, parcel, again, perdure.WithStart(parcel, nil)).Await(ctx)
}

func registry(own activities) *perdure.Registry {
	r := perdure.NewRegistry()
	local := label
	local.Register(r, echo)
	perdure.AddActivity(r, "weigh", echo)
	for _, ref := range []perdure.ActivityRef[string, string]{own.cut, measure} {
		ref.Register(r, echo)
	}
	perdure.AddOrchestration(r, "deliver", deliver)
	return r
}

func main() { lambdahandler.StartOrchestrator(registry(activities{})) }
