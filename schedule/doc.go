// Package schedule starts orchestrations at a rate, or by a cron expression in a time zone.
//
//	err := c.Schedules().Put(ctx, schedule.Schedule{ // c is a *client.Client
//		ID:            "nightly",
//		Orchestration: "report",
//		Expression:    "0 2 * * MON-FRI",
//		TimeZone:      "Europe/Berlin",
//	})
//
// A schedule is an instance of the orchestration [OrchestrationName]. It waits with a durable timer, starts each run as
// a sub-orchestration, and continues as new. Its history records the runs. You can list and cancel it like other
// instances. Use the methods of client.Client to create, change, pause and read schedules.
//
// Orchestrators of package lambdahandler and hubs of package perduretest register the orchestration. If you create a
// dispatcher yourself, register it with [Register].
//
// See docs/guides/schedules.md.
package schedule
