package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/schedule"
)

// Backfill starts the runs of a new schedule for past times. Each run starts once, even if the request is repeated.
func Example_backfillSchedule() {
	days := make(chan string, 10)
	r := perdure.NewRegistry()
	schedule.Register(r)
	perdure.AddActivity(r, "add-up", func(_ context.Context, day string) (bool, error) {
		days <- day
		return true, nil
	})
	perdure.AddOrchestration(r, "sales-of-a-day", func(ctx *perdure.OrchestrationContext, _ any) (bool, error) {
		due, _ := schedule.DueTime(ctx.InstanceID())
		return perdure.CallActivityByName[bool](ctx, "add-up", due.Format(time.DateOnly)).Await(ctx)
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	must("", c.Schedules().Put(ctx, schedule.Schedule{
		ID: "sales", Orchestration: "sales-of-a-day", Expression: "0 2 * * MON-FRI", TimeZone: "Europe/Berlin",
	}))
	from, to := time.Date(2026, 3, 26, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC)
	for range 2 {
		must("", c.Schedules().Backfill(ctx, "sales", from, to))
	}
	fmt.Println(<-days, <-days, <-days)
	// Output: 2026-03-26 2026-03-27 2026-03-30
}
