// Command names calls registered functions.
package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

type carrier struct{}

func (*carrier) Ship(_ context.Context, at time.Time) (json.RawMessage, error) {
	return json.Marshal(at)
}

func count(_ context.Context, parcels []string) (float64, error) { return float64(len(parcels)), nil }

var label = perdure.DefineActivity[string, string]("label")

func deliver(ctx *perdure.OrchestrationContext, parcels []string) (any, error) {
	if _, err := perdure.CallActivity(ctx, (*carrier)(nil).Ship, ctx.Now()).Await(ctx); err != nil {
		return nil, err
	}
	if _, err := perdure.CallActivityByName[map[string]int](ctx, "ship", "now").Await(ctx); err != nil { // own marshaling
		return nil, err
	}
	if _, err := perdure.CallActivityByName[int](ctx, "count", parcels).Await(ctx); err != nil {
		return nil, err
	}
	if _, err := label.Call(ctx, parcels[0]).Await(ctx); err != nil {
		return nil, err
	}
	if _, err := perdure.CallActivityByName[string](ctx, "label", parcels[0]).Await(ctx); err != nil {
		return nil, err
	}
	//perdure:ignore unregistered a worker in Python registers the activity
	if _, err := perdure.CallActivityByName[string](ctx, "classify", parcels).Await(ctx); err != nil {
		return nil, err
	}
	// The input is the input of one of two versions.
	if _, err := perdure.StartOrchestration(ctx, "settle", 7); err != nil {
		return nil, err
	}
	return perdure.CallSubOrchestrationByName[any](ctx, "deliver", parcels).Await(ctx)
}

func settle(*perdure.OrchestrationContext, string) (string, error)  { return "", nil }
func settleAnew(*perdure.OrchestrationContext, int) (string, error) { return "", nil }

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	c := &carrier{}
	perdure.AddActivity(r, "ship", c.Ship)
	perdure.AddActivity(r, "count", count)
	label.Register(r, func(_ context.Context, text string) (string, error) { return text, nil })
	perdure.AddOrchestration(r, "deliver", deliver)
	perdure.AddOrchestration(r, "settle", settle)
	perdure.AddOrchestration(r, "settle", settleAnew, perdure.WithVersion("2"))
	return r
}

func main() { lambdahandler.StartOrchestrator(registry()) }
