package client_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// This example creates a schedule whose overlap policy cancels the current run when the next one is due. It triggers
// the runs with Trigger instead of waiting for the scheduled times.
func ExampleSchedules_Put() {
	r := perdure.NewRegistry()
	schedule.Register(r) // not needed with lambdahandler
	perdure.AddOrchestration(r, "report", func(ctx *perdure.OrchestrationContext, of string) (string, error) {
		data, err := perdure.WaitForExternalEvent[string](ctx, "data").Await(ctx)
		return of + ": " + data, err
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	must(c.Schedules().Put(ctx, schedule.Schedule{
		ID: "nightly", Orchestration: "report", Input: []byte(`"sales"`), Expression: "0 2 * * *",
		TimeZone: "Europe/Berlin", Overlap: schedule.OverlapCancel,
	}))
	first, err := c.Schedules().Trigger(ctx, "nightly")
	must(err)
	untilIs(ctx, c, first, client.StatusRunning)

	second, err := c.Schedules().Trigger(ctx, "nightly")
	must(err)
	s, err := c.Wait(ctx, first)
	must(err)
	fmt.Println("the first is", s.Status)
	untilIs(ctx, c, second, client.StatusRunning)
	must(c.RaiseEvent(ctx, second, "data", "900 cents"))
	s, err = c.Wait(ctx, second)
	must(err)
	fmt.Println(client.Result[string](s))
	// Output:
	// the first is Cancelled
	// sales: 900 cents <nil>
}
