// Package examples gathers the orchestrations that the reference functions deploy. Each example is a package of its own;
// orders is the one to read first, and features has what is left.
package examples

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/examples/features"
	"github.com/perdure/perdure/examples/orders"
)

// Registry holds every example.
func Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	orders.Register(r, orders.NewShop())
	features.Register(r)
	return r
}
