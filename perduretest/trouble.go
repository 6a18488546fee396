package perduretest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

// Service is one that a hub is made of.
type Service string

// The services of a hub.
const (
	DynamoDB  Service = "DynamoDB"
	SQS       Service = "SQS"
	Scheduler Service = "Scheduler" // EventBridge Scheduler, which holds timers of more than 15 minutes
	S3        Service = "S3"        // which holds large payloads, in an Env WithLargePayloads
)

// Outage has every call of a service fail for d of virtual time, those of the Client too. A service that is none of these fails the test. A message that
// fails through hours of it ends in the dead letters; the hub's sweeper recovers it at its first tick after the outage.
func (e *Env) Outage(service Service, d time.Duration) {
	e.t.Helper()
	e.virtual("Outage")
	if services := []Service{DynamoDB, SQS, Scheduler, S3}; !slices.Contains(services, service) {
		e.t.Fatalf("perduretest: Outage: %q is none of the services %q", service, services)
	}
	end := e.Now().Add(d)
	e.trouble.Fail(string(service), end)
	e.hub.Sweeper.OutageUntil(end)
}

// CrashAt kills the function's process that makes the n-th AWS call from now on: neither that call nor anything the process does afterwards is
// done. What it had in hand is delivered again once SQS takes it for lost, after 90 seconds or, for an activity, 15 minutes. The calls of the hub's
// sweeper are not counted.
func (e *Env) CrashAt(n int) {
	e.t.Helper()
	e.virtual("CrashAt")
	if n < 1 {
		e.t.Fatalf("perduretest: the calls are counted from 1, and not %d", n)
	}
	e.trouble.CrashAt(int64(n), false)
}

// AWSCalls is how many calls functions have made: for CrashAt.
func (e *Env) AWSCalls() int { return int(e.trouble.Calls()) }

// crash is an option of New: at which call a process dies, and whether the call is done; at none when it is 0.
type crash struct {
	at    int64
	after bool
}

func (c crash) apply(o *options) { o.crash = c }

// everyInShort is which calls a short run tries.
const everyInShort = 7

// mostCalls is far more than a test makes that is to end.
const mostCalls = 10_000

// CrashAtEveryCall runs body once without a crash, and then, as subtests, twice for each AWS call that functions make in it: the process dies before
// the call is done, and after. body makes an Env with the option, and whatever world its activities need, and wants the same of each: that the work is done. With -short
// it is every seventh call.
func CrashAtEveryCall(t *testing.T, body func(t *testing.T, crashes Option) *Env) {
	t.Helper()
	calls := 0
	t.Run("no crash", func(t *testing.T) { calls = body(t, crash{}).AWSCalls() })
	every := 1
	if testing.Short() {
		every = everyInShort
	}
	for n := 1; n <= min(calls, mostCalls) && !t.Failed(); n += every {
		t.Run(fmt.Sprintf("before call %d", n), func(t *testing.T) { body(t, crash{at: int64(n)}) })
		t.Run(fmt.Sprintf("after call %d", n), func(t *testing.T) { body(t, crash{at: int64(n), after: true}) })
	}
}

// Watch runs the hub's sweeper once, now. Without Watch the sweeper runs in Advance and Wait, every two minutes of virtual time.
//
// Wait does not pass time for a start that was committed and not begun (client.StartItem): it returns an *IdleError that says so.
func Watch(env *Env) {
	env.t.Helper()
	env.virtual("Watch")
	env.outside("Watch")
	var err error
	env.do(func() { _, err = env.hub.Timekeeper.Watch(context.Background()) })
	if err != nil {
		env.t.Fatalf("perduretest: watch: %v", err)
	}
}

// Deploy has the functions run what r holds from now on, as another build: instances go on with its code, and what was blocked tries again. Stubs
// stay. Code that does not fit their histories blocks instances, which does not fail the test any more: Status has the diagnosis.
func (e *Env) Deploy(r *perdure.Registry) {
	e.t.Helper()
	e.virtual("Deploy")
	e.RunUntilIdle()
	var err error
	e.do(func() {
		e.builds++
		err = e.hub.Deploy(context.Background(), e.stubs.standIn(e, r), fmt.Sprintf("test-%d", e.builds+1))
	})
	if err != nil {
		e.t.Fatalf("perduretest: deploy: %v", err)
	}
}
