// Package calling calls an activity by name that another package registers.
package calling

import "github.com/perdure/perdure"

// Deliver is an orchestration.
func Deliver(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	return perdure.CallActivityByName[string](ctx, "weigh-parcel", 7).Await(ctx)
}
