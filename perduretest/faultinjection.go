package perduretest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

// Service is an AWS service that a hub uses.
type Service string

// Services of a hub.
const (
	DynamoDB Service = "DynamoDB"
	SQS      Service = "SQS"
	// Scheduler is EventBridge Scheduler, which stores timers of more than 15 minutes.
	Scheduler Service = "Scheduler"
	// S3 stores large payloads in an Env with WithLargePayloads.
	S3 Service = "S3"
)

// Outage makes all calls to a service fail for d of virtual time, including calls of the Client. Messages that are
// already in a queue of SQS are still delivered to the functions. An unknown service fails the test. A message that
// fails for hours is moved to the dead-letter queue. The sweeper recovers it at its first tick after the outage.
func (e *Env) Outage(service Service, d time.Duration) {
	e.t.Helper()
	e.deployed.reject(e.t, "Outage")
	if services := []Service{DynamoDB, SQS, Scheduler, S3}; !slices.Contains(services, service) {
		e.t.Fatalf("perduretest: Outage: unknown service %q; want one of %q", service, services)
	}
	end := e.Now().Add(d)
	e.injector.Fail(string(service), end)
	e.hub.Sweeper.OutageUntil(end)
}

// CrashAt kills the function's process that makes the n-th AWS call from now, counted from 1. The process does not make
// this call and does nothing afterwards. SQS redelivers the process's messages after 90 seconds, or after 15 minutes
// for an activity. Calls of the sweeper are not counted.
func (e *Env) CrashAt(n int) {
	e.t.Helper()
	e.deployed.reject(e.t, "CrashAt")
	if n < 1 {
		e.t.Fatalf("perduretest: CrashAt: n must be at least 1, is %d", n)
	}
	e.injector.CrashAt(int64(n), false)
}

// AWSCalls returns the number of AWS calls that the functions have made. Use it to choose the argument of CrashAt.
func (e *Env) AWSCalls() int { return int(e.injector.Calls()) }

// crash is an option of New. at is the number of the call at which a process dies, or 0. If after is true, the process
// dies after the call.
type crash struct {
	at    int64
	after bool
}

func (c crash) apply(o *options) { o.crash = c }

// shortRunStep is the interval between tested calls in a short run.
const shortRunStep = 7

// maxTestedCalls limits the tested calls.
const maxTestedCalls = 10_000

// CrashAtEveryCall runs body once without a crash, and then in two subtests for each AWS call of the functions. The
// process dies before the call in the first subtest, and after the call in the second. body creates an Env with the
// option, sets up the services that its activities use, and checks that the work is done. Do not call t.Helper in body,
// because it hides the line that fails. With -short, only every seventh call is tested.
func CrashAtEveryCall(t *testing.T, body func(t *testing.T, crashes Option) *Env) {
	t.Helper()
	calls := 0
	t.Run("no crash", func(t *testing.T) { calls = body(t, crash{}).AWSCalls() })
	every := 1
	if testing.Short() {
		every = shortRunStep
	}
	for n := 1; n <= min(calls, maxTestedCalls) && !t.Failed(); n += every {
		t.Run(fmt.Sprintf("before call %d", n), func(t *testing.T) { body(t, crash{at: int64(n)}) })
		t.Run(fmt.Sprintf("after call %d", n), func(t *testing.T) { body(t, crash{at: int64(n), after: true}) })
	}
}

// RunSweeper runs the hub's sweeper once immediately. The sweeper also runs every two minutes of virtual time in
// Advance and in waits of the Client.
//
// A wait does not advance the time for a start that was committed without a Wake (client.PrepareStart). It returns an
// *IdleError instead. Use RunSweeper or Advance.
func RunSweeper(env *Env) {
	env.t.Helper()
	env.deployed.reject(env.t, "RunSweeper")
	env.outside("RunSweeper")
	var err error
	env.do(func() { _, err = env.hub.Renewer.Sweep(context.Background()) })
	if err != nil {
		env.t.Fatalf("perduretest: sweeper: %v", err)
	}
}

// Deploy replaces the code of the functions by r, as a new build. Instances continue with the new code, and blocked
// instances are retried. Stubs remain in effect. After Deploy, nondeterminism does not fail the test. An instance whose
// history does not match the code is blocked, and Status returns the diagnosis.
func (e *Env) Deploy(r *perdure.Registry) {
	e.t.Helper()
	e.deployed.reject(e.t, "Deploy")
	e.RunUntilIdle()
	e.faults.ignore([]Fault{Nondeterminism}) // the new code may deviate from the histories of the old code
	var err error
	e.do(func() {
		e.builds++
		err = e.hub.Deploy(context.Background(), e.stubs.registryFor(e, r), fmt.Sprintf("test-%d", e.builds+1))
	})
	if err != nil {
		e.t.Fatalf("perduretest: deploy: %v", err)
	}
}
