// Package app is the application of the end-to-end tests. It has the examples, the scenarios of the engine, and
// orchestrations that run long enough for a test to inject a fault. The commands in functions/ are built and deployed
// like those of a user.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples"
	"github.com/perdure/perdure/tests/scenarios"
)

// Naps is the input of the orchestration "naps": the number of consecutive activities, and the duration of each.
type Naps struct {
	Count int
	Each  time.Duration
}

// Registry returns a registry with the examples and the orchestrations of the tests. Activities use the client hub. The
// client may be nil in a process that runs no activities.
func Registry(hub *client.Client) *perdure.Registry {
	r := examples.Registry()
	perdure.AddActivity(r, "nap", nap)
	perdure.AddOrchestration(r, "hello", hello)
	perdure.AddOrchestration(r, "naps", naps)
	perdure.AddOrchestration(r, "timer", timer)
	perdure.AddOrchestration(r, "fails", fails)
	perdure.AddActivity(r, "third", third)
	perdure.AddActivity(r, "stands-by", waitForCancel)
	perdure.AddOrchestration(r, "all-stand-by", allStandBy)
	perdure.AddOrchestration(r, "leaves-work", leavesWork)
	perdure.AddOrchestration(r, "echo", echo)
	perdure.AddActivity(r, "never", never)
	perdure.AddOrchestration(r, "one-of-two", oneOfTwo)
	perdure.AddActivity(r, "deadly", crash)
	perdure.AddOrchestration(r, "poisoned", poisoned)
	perdure.AddOrchestration(r, "fatal", fatal)
	perdure.AddActivity(r, "holds", hold)
	perdure.AddActivity(r, "lets-go", undoHold)
	perdure.AddOrchestration(r, "holding", holding)
	all := scenarios.All(0) // the inputs have the durations
	scenarios.Register(r, all...)
	scenarios.Hold(hub, all...)
	return r
}

func nap(ctx context.Context, d time.Duration) (string, error) {
	select {
	case <-time.After(d):
		return perdure.ActivityInfoFrom(ctx).InstanceID, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Watches is the input of the orchestration "all-stand-by": the number of activities that wait for their cancel, and a
// folder. Each activity creates a file in the folder when it starts.
type Watches struct {
	Count  int
	Folder string
}

// Watch is the input of one such activity.
type Watch struct {
	Number int
	Folder string
}

// ObservedCancel has the time at which an activity observed its cancel, and the reason.
type ObservedCancel struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

func waitForCancel(ctx context.Context, w Watch) (ObservedCancel, error) {
	i := perdure.ActivityInfoFrom(ctx)
	if err := os.WriteFile(filepath.Join(w.Folder, fmt.Sprintf("%s-%d", i.InstanceID, w.Number)), nil,
		0o600); err != nil {
		return ObservedCancel{}, err
	}
	<-ctx.Done()
	at := time.Now()
	var why *perdure.CancelledError
	if !errors.As(context.Cause(ctx), &why) {
		return ObservedCancel{}, context.Cause(ctx)
	}
	return ObservedCancel{at, string(why.Reason)}, nil
}

// allStandBy waits until it is cancelled. It then sleeps, so that its history records the results of its activities.
func allStandBy(ctx *perdure.OrchestrationContext, w Watches) (struct{}, error) {
	var all []perdure.Awaitable
	for n := range w.Count {
		all = append(all, perdure.CallActivity(ctx, waitForCancel, Watch{n, w.Folder}))
	}
	err := perdure.WhenAll(ctx, all...)
	late := perdure.Sleep(perdure.WithoutCancel(ctx), 3*time.Second)
	if late != nil {
		return struct{}{}, errors.Join(err, late)
	}
	return struct{}{}, err
}

// leavesWork completes at the event "go" while an activity runs.
func leavesWork(ctx *perdure.OrchestrationContext, folder string) (string, error) {
	perdure.CallActivity(ctx, waitForCancel, Watch{Folder: folder})
	return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
}

// never runs until it is cancelled, or fails if fails is positive.
func never(ctx context.Context, fails int) (string, error) {
	if fails > 0 {
		return "", errors.New("not yet")
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// oneOfTwo returns the reason and the message of the cancel of its activity. A failed activity waits an hour for its
// retry.
func oneOfTwo(ctx *perdure.OrchestrationContext, fails int) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour, MaxInterval: time.Hour})
	_, err := perdure.CallActivity(ctx, never, fails, retried).Await(ctx)
	if c, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return fmt.Sprintf("%s: %s", c.Reason, c.Message), nil
	}
	return "", err
}

func hello(_ *perdure.OrchestrationContext, name string) (string, error) {
	return "hello, " + name, nil
}

// naps returns the number of completed activities.
func naps(ctx *perdure.OrchestrationContext, n Naps) (int, error) {
	for i := range n.Count {
		if _, err := perdure.CallActivity(ctx, nap, n.Each).Await(ctx); err != nil {
			return i, err
		}
	}
	return n.Count, nil
}

func timer(ctx *perdure.OrchestrationContext, d time.Duration) (time.Time, error) {
	return perdure.CreateTimer(ctx, d).Await(ctx)
}

func fails(ctx *perdure.OrchestrationContext, _ struct{}) (struct{}, error) {
	_, err := perdure.CallActivityByName[struct{}](ctx, "reserve-stock", map[string]int{"quantity": -1}).Await(ctx)
	return struct{}{}, err
}

// echo waits for an event, and passes its data to an activity that fails twice. It returns the result.
func echo(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	ctx.SetCustomStatus("waiting")
	data, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	if err != nil {
		return "", err
	}
	policy := perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: 100 * time.Millisecond}
	return perdure.CallActivity(ctx, third, data, perdure.WithRetry(policy)).Await(ctx)
}

// third succeeds in its third attempt.
func third(ctx context.Context, word string) (string, error) {
	if n := perdure.ActivityInfoFrom(ctx).Attempt; n < 3 {
		return "", fmt.Errorf("attempt %d of 3", n)
	}
	return word + " at last", nil
}

// CrashInput is the input of code that ends its process. Each run of the code creates a file in the folder.
type CrashInput struct{ Folder string }

func (d CrashInput) crashNow() error {
	f, err := os.CreateTemp(d.Folder, "ran-*")
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	os.Exit(1)
	return nil
}

func crash(_ context.Context, d CrashInput) (struct{}, error) { return struct{}{}, d.crashNow() }

// poisoned calls an activity that ends its process, and returns the type of its error.
func poisoned(ctx *perdure.OrchestrationContext, d CrashInput) (string, error) {
	_, err := perdure.CallActivity(ctx, crash, d).Await(ctx)
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return failed.Type, nil
	}
	return "", err
}

// fatal ends its process at the event "go".
func fatal(ctx *perdure.OrchestrationContext, d CrashInput) (struct{}, error) {
	if _, err := perdure.WaitForExternalEvent[bool](ctx, "go").Await(ctx); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, d.crashNow()
}
