// Command names calls functions that are not registered, or that have other types.
package main

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/registered"
	"github.com/perdure/perdure/lambdahandler"
)

func ship(_ context.Context, parcel string) (string, error)  { return parcel, nil }
func forgotten(_ context.Context, _ string) (string, error)  { return "", nil }
func count(_ context.Context, parcels []string) (int, error) { return len(parcels), nil }

func forgottenChild(*perdure.OrchestrationContext, string) (string, error) { return "", nil }

const chargeCard = "charge-card"

func deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivityByName[int](ctx, "count", parcel).Await(ctx); err != nil { // want `activity "count", called at names/names.go:21, gets a string but takes a list: payloads are JSON, .* \[misfit\]`
		return "", err
	}
	if _, err := perdure.CallActivityByName[string](ctx, "count", []string{parcel}).Await(ctx); err != nil { // want `activity "count", called at .*, returns a number but the call expects a string`
		return "", err
	}
	if _, err := perdure.CallSubOrchestrationByName[struct{}](ctx, "deliver", &parcel).Await(ctx); err != nil { // want `orchestration "deliver", called at .*, returns a string but the call expects an object`
		return "", err
	}
	if _, err := perdure.StartOrchestration(ctx, "deliver", true); err != nil { // want `orchestration "deliver", called at .*, gets a boolean but takes a string`
		return "", err
	}
	if _, err := perdure.CallActivityByName[string](ctx, "ship-parcle", parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallActivityByName[string](ctx, chargeCard, parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallSubOrchestrationByName[string](ctx, "refund", parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallActivity(ctx, forgotten, parcel).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallSubOrchestration(ctx, forgottenChild, parcel).Await(ctx)
}

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ship-parcel", ship) // want `activity "ship-parcel", called at registered/registered.go:18, gets a number but takes a string`
	perdure.AddActivity(r, "count", count)
	perdure.AddActivity(r, "reserve", registered.Reserve)
	perdure.AddOrchestration(r, "deliver", deliver)
	perdure.AddOrchestration(r, "fulfil", registered.Fulfil)
	return r
}

func main() {
	lambdahandler.StartOrchestrator(registry()) // want `warning: activity "ship-parcle", called at names/names.go:33, is not registered in this program \(did you mean "ship-parcel"\?\): .* \[unregistered\]` `activity "charge-card", called at` `orchestration "refund", called at` `activity github.com/perdure/perdure/analysis/testdata/wrong/names.forgotten, called at` `orchestration github.com/perdure/perdure/analysis/testdata/wrong/names.forgottenChild, called at`
}
