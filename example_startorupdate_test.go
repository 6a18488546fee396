package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// The first call starts the guest list. Each call returns the result of its own update.
func Example_startOrUpdate() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "invite", invite)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	for _, guest := range []string{"ann", "ann", "bob"} {
		reply, started, err := c.StartOrUpdate(ctx, "invite", 2, "add", guest, client.WithInstanceID("party"),
			client.WithIdempotencyKey(guest))
		fmt.Printf("%s %v %v\n", reply, started, err)
	}
	// Output:
	// 1 true <nil>
	// 1 true <nil>
	// 2 false <nil>
}
