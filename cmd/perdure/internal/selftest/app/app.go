// Package app is the application that the self-test deploys: the scenarios of the end-to-end tests, and orchestrations
// whose histories show latencies. The commands in functions are its functions.
package app

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios"
)

// Names of orchestrations and of an activity.
const (
	// Steps is an orchestration of the scenarios that calls activities in sequence. Its input is their number.
	Steps = "Counts"
	// InlineSteps is Steps with inline activities.
	InlineSteps = "InlineChain"
	// Lateness sleeps for its input, and returns how late its timer was.
	Lateness = "selftest-lateness"
	// Standby runs an activity until it is cancelled.
	Standby = "selftest-standby"
	// StandbyActivity is the activity of Standby. It sends a heartbeat with details at its start.
	StandbyActivity = "selftest-standby-activity"
	// Greet returns a greeting.
	Greet = "Hello"
)

// Registry returns the orchestrations and activities. Activities of scenarios use the client hub, which is nil in a
// process that runs no activities.
func Registry(hub *client.Client) *perdure.Registry {
	r := perdure.NewRegistry()
	all := scenarios.All(0) // the inputs have the durations
	scenarios.Register(r, all...)
	scenarios.Hold(hub, all...)
	perdure.AddOrchestration(r, Lateness, lateness)
	perdure.AddOrchestration(r, Standby, standby)
	perdure.AddActivity(r, StandbyActivity, waitForCancel)
	return r
}

func lateness(ctx *perdure.OrchestrationContext, d time.Duration) (time.Duration, error) {
	due := ctx.Now().Add(d)
	if err := perdure.Sleep(ctx, d); err != nil {
		return 0, err
	}
	return ctx.Now().Sub(due), nil
}

func standby(ctx *perdure.OrchestrationContext, _ struct{}) (struct{}, error) {
	return perdure.CallActivity(ctx, waitForCancel, struct{}{}).Await(ctx)
}

func waitForCancel(ctx context.Context, _ struct{}) (struct{}, error) {
	perdure.Heartbeat(ctx, "running")
	<-ctx.Done()
	return struct{}{}, context.Cause(ctx)
}
