// Package app is the application of the fault tests. An environment variable makes a function faulty.
package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/perdure/perdure"
)

// Fault is the name of the environment variable. A test sets it for a deployed function, as an operator would.
const Fault = "PERDURE_TEST_FAULT"

// The values of Fault.
const (
	ExitAtInit      = "exit-at-init"
	NoRegistrations = "no-registrations"
)

// Registry returns the registry of the application. With the fault NoRegistrations it is empty, and with ExitAtInit the
// process exits.
func Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	switch os.Getenv(Fault) {
	case ExitAtInit:
		fmt.Fprintln(os.Stderr, "the function exits during initialization as configured")
		os.Exit(1)
	case NoRegistrations:
		return r
	}
	perdure.AddActivity(r, "greet", greet)
	perdure.AddActivity(r, "die", crash)
	perdure.AddOrchestration(r, "greeting", greeting)
	perdure.AddOrchestration(r, "deadly", crashing)
	perdure.AddOrchestration(r, "napping", napping)
	return r
}

func greet(_ context.Context, name string) (string, error) { return "hello, " + name, nil }

// crash ends its process in each attempt.
func crash(context.Context, string) (string, error) {
	os.Exit(1)
	return "", nil
}

func greeting(ctx *perdure.OrchestrationContext, name string) (string, error) {
	return perdure.CallActivity(ctx, greet, name).Await(ctx)
}

func crashing(ctx *perdure.OrchestrationContext, name string) (string, error) {
	return perdure.CallActivity(ctx, crash, name).Await(ctx)
}

func napping(ctx *perdure.OrchestrationContext, d time.Duration) (time.Time, error) {
	return perdure.CreateTimer(ctx, d).Await(ctx)
}
