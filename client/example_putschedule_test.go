package client_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// A run that is still under way when the next is due is cancelled, and the next begins when it is over. The schedule is run by hand here, as if it
// had come due.
func ExampleClient_PutSchedule() {
	r := perdure.NewRegistry()
	schedule.AddTo(r) // functions of lambdahandler know it without
	perdure.AddOrchestration(r, "report", func(ctx *perdure.OrchestrationContext, of string) (string, error) {
		data, err := perdure.WaitForExternalEvent[string](ctx, "data").Await(ctx)
		return of + ": " + data, err
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	must(c.PutSchedule(ctx, schedule.Schedule{
		ID: "nightly", Orchestration: "report", Input: []byte(`"sales"`), When: "0 2 * * *", TimeZone: "Europe/Berlin", Overlap: schedule.Cancel,
	}))
	first, err := c.RunSchedule(ctx, "nightly")
	must(err)
	untilIs(ctx, c, first, client.StatusRunning)

	second, err := c.RunSchedule(ctx, "nightly")
	must(err)
	s, err := c.Wait(ctx, first)
	must(err)
	fmt.Println("the first is", s.Status)
	untilIs(ctx, c, second, client.StatusRunning)
	must(c.Raise(ctx, second, "data", "900 cents"))
	s, err = c.Wait(ctx, second)
	must(err)
	fmt.Println(client.Result[string](s))
	// Output:
	// the first is Cancelled
	// sales: 900 cents <nil>
}
