// Package app is the application that the self-test deploys: the scenarios of the end-to-end tests, and orchestrations
// whose histories show latencies. The commands in functions are its functions.
package app

import (
	"context"
	"os"
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
	// FanOut calls activities concurrently, and returns the sum of the numbers up to its input.
	FanOut = "FanOutFanIn"
	// Receive waits for the event with the name of its input, and returns the number in it.
	Receive = "selftest-receive"
	// Exit runs an activity that ends its process in its first delivery. It returns the number of the last delivery.
	Exit = "selftest-exit"
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
	perdure.AddOrchestration(r, Receive, receive)
	perdure.AddOrchestration(r, Exit, exit)
	perdure.AddActivity(r, StandbyActivity, waitForCancel)
	perdure.AddActivity(r, "selftest-exit-activity", exitOnce)
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

func receive(ctx *perdure.OrchestrationContext, event string) (int, error) {
	return perdure.WaitForExternalEvent[int](ctx, event).Await(ctx)
}

func exit(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
	return perdure.CallActivity(ctx, exitOnce, struct{}{}).Await(ctx)
}

func exitOnce(ctx context.Context, _ struct{}) (int, error) {
	deliveries := perdure.ActivityInfoFrom(ctx).DeliveryCount
	if deliveries == 1 {
		os.Exit(1)
	}
	return deliveries, nil
}
