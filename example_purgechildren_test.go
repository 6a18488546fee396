package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Purge a completed order with its sub-orchestrations.
func Example_purgeWithChildren() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "pack", func(_ *perdure.OrchestrationContext, parcel int) (int, error) {
		return parcel, nil
	})
	perdure.AddOrchestration(r, "ship", func(ctx *perdure.OrchestrationContext, parcels int) (int, error) {
		for parcel := range parcels {
			id := perdure.WithInstanceID(fmt.Sprint(ctx.InstanceID(), "/parcel-", parcel))
			if _, err := perdure.CallSubOrchestrationByName[int](ctx, "pack", parcel, id).Await(ctx); err != nil {
				return 0, err
			}
		}
		return parcels, nil
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	must(c.Start(ctx, "ship", 2, client.WithInstanceID("order-7")))
	for _, id := range []string{"order-7", "order-7/parcel-0", "order-7/parcel-1"} {
		fmt.Println(must(c.Wait(ctx, id)).Status)
	}
	if err := c.Purge(ctx, "order-7", client.WithChildren()); err != nil {
		fmt.Println(err)
	}
	for _, id := range []string{"order-7", "order-7/parcel-0", "order-7/parcel-1"} {
		_, err := c.Status(ctx, id)
		fmt.Println(errors.Is(err, client.ErrNotFound))
	}
	// Output:
	// Completed
	// Completed
	// Completed
	// true
	// true
	// true
}
