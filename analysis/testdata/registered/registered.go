// Package registered has functions that a program of several packages registers and calls.
package registered

import (
	"context"

	"github.com/perdure/perdure"
)

// Order is the input of Fulfil.
type Order struct{ Item string }

// Reserve is an activity that no code calls by name.
func Reserve(_ context.Context, o Order) (string, error) { return o.Item, nil }

// Fulfil calls an activity that another package registers.
func Fulfil(ctx *perdure.OrchestrationContext, o Order) (string, error) {
	_, err := perdure.CallActivityByName[string](ctx, "ship-parcel", 7).Await(ctx)
	return o.Item, err
}
