package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// WaitForStart waits until the code of an instance runs, not until it ends.
func Example_waitForStart() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "tour", func(ctx *perdure.OrchestrationContext, _ string) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "over").Await(ctx)
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	at := must(c.Start(ctx, "tour", "the tower", client.WithInstanceID("now")))
	fmt.Println(must(c.WaitForStart(ctx, at)).Status)

	later := must(c.Start(ctx, "tour", "the bridge", client.WithInstanceID("later"), client.WithDelay(time.Hour)))
	soon, enough := context.WithTimeout(ctx, 100*time.Millisecond)
	defer enough()
	s, err := c.WaitForStart(soon, later)
	fmt.Println(s.Status, errors.Is(err, context.DeadlineExceeded))
	// Output:
	// Running
	// Pending true
}
