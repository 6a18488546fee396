// Package examples registers the example orchestrations that the reference functions deploy. Each example has its own
// package. Start with package orders. Package features has small examples of single features.
package examples

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/examples/features"
	"github.com/perdure/perdure/examples/orders"
)

// Registry returns a registry with all examples.
func Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	orders.Register(r, orders.NewShop())
	features.Register(r)
	return r
}
