// Package payloadkinds sends values that JSON loses.
package payloadkinds

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

type order struct{ id string }

func order2(ctx *perdure.OrchestrationContext, in string) (string, error) {
	o := perdure.SideEffect(ctx, func() order { return order{in} })                                      // want `^order has the unexported field id: .*\[payload\]`
	if err := perdure.SetUpdateHandler(ctx, "add", func(*perdure.OrchestrationContext, order) (int, error) { // want `order has the unexported field id.*\[payload\]`
		return 0, nil
	}); err != nil {
		return "", err
	}
	if err := perdure.SetQueryHandler(ctx, "all", func(struct{}) ([]order, error) { return []order{o}, nil }); err != nil { // want `\[\]order has the unexported field id.*\[payload\]`
		return "", err
	}
	perdure.RaiseEvent(ctx, "other", "done", o)                              // want `order has the unexported field id.*\[payload\]`
	if _, err := perdure.StartOrchestration(ctx, "settle", &o); err != nil { // want `\*order has the unexported field id.*\[payload\]`
		return "", err
	}
	if _, err := perdure.CallActivityByName[order](ctx, "ship", in).Await(ctx); err != nil { // want `order has the unexported field id.*\[payload\]`
		return "", err
	}
	if _, err := perdure.CallSubOrchestrationByName[string](ctx, "pack", map[string]order{}).Await(ctx); err != nil { // want `map\[string\]order has the unexported field id.*\[payload\]`
		return "", err
	}
	call := perdure.CallUpdate[order](ctx, "other", "take", o, // want `order has the unexported field id.*\[payload\]` `order has the unexported field id.*\[payload\]`
		perdure.WithStart("pack", o)) // want `order has the unexported field id.*\[payload\]`
	if _, err := call.Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[int](ctx, "cart", in, "add", o).Await(ctx); err != nil { // want `order has the unexported field id.*\[payload\]`
		return "", err
	}
	return "", perdure.WithErrorDetails(errors.New("no"), o) // want `order has the unexported field id.*\[payload\]`
}

type cart struct{ lines []order }

func register(r *perdure.Registry) {
	perdure.AddEntity(r, "cart",
		perdure.Operation("add", func(_ *perdure.OrchestrationContext, c *cart, o order) (int, error) { // want `cart has the unexported field lines.*\[payload\]` `order has the unexported field id.*\[payload\]`
			c.lines = append(c.lines, o)
			return len(c.lines), nil
		}))
}

type place struct{ X, Y int }

type board map[place]string

func plays(ctx *perdure.OrchestrationContext, _ string) (complex128, error) {
	_ = perdure.SideEffect(ctx, func() board { return nil })            // want `^board has a map whose keys are neither strings nor integers.*\[payload\]`
	return perdure.SideEffect(ctx, func() complex128 { return 1 }), nil // want `complex128 has a complex number.*\[payload\]`
}

func start(ctx context.Context, c *client.Client) error {
	if _, err := c.Start(ctx, "order", order{}); err != nil { // want `order has the unexported field id.*\[payload\]`
		return err
	}
	return c.RaiseEvent(ctx, "order-1", "paid", order{}) // want `order has the unexported field id.*\[payload\]`
}

// cents has a MarshalJSON method with a pointer receiver.
type cents struct{ N int }

func (c *cents) MarshalJSON() ([]byte, error) { return json.Marshal(c.N) }

type line struct{ Price [1]cents }

func prices(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	_ = perdure.SideEffect(ctx, func() map[string]cents { return nil })  // want `map\[string\]cents has map values whose MarshalJSON has a pointer receiver.*\[payload\]`
	_ = perdure.SideEffect(ctx, func() []map[string]line { return nil }) // want `map\[string\]line has map values whose MarshalJSON has a pointer receiver.*\[payload\]`
	return "", nil
}
