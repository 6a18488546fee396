// Package kit has the type of scenarios, and the checks, activities and orchestrations that several of them share.
package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Scenario is an orchestration, the calls of a client during its run, and the expected result.
type Scenario struct {
	// Name is the name of the test and of the orchestration.
	Name string
	// Register adds the orchestration with this name, and the registrations that only this scenario needs.
	Register func(r *perdure.Registry, name string)
	// Hold gives a client of the hub to the activities before they run. It is nil if they need none.
	Hold  func(c *client.Client)
	Input any
	Start []client.StartOption
	// Drive makes the calls of a client after the start. It is nil if there are none.
	Drive func(ctx context.Context, w World, id string) error
	// Check checks the instance that has ended.
	Check Check
	// CheckWithoutFaults is an additional check for tests without faults, which runs after the effects of the end. It
	// may be nil.
	CheckWithoutFaults Check
	// Virtual scenarios take hours and need virtual time.
	Virtual bool
	// Large scenarios need a hub with a payload store.
	Large bool
	// Long scenarios make hundreds of AWS calls.
	Long bool
}

// Check returns an error if an instance did not end as expected. It can read more with the client.
type Check func(ctx context.Context, c *client.Client, s client.Status) error

// World is the environment in which a scenario runs.
type World struct {
	Client *client.Client
	// Holder completes activities with tokens. The default is Client.
	Holder Holder
	// Tick is the unit of durations.
	Tick time.Duration
	// Pass lets time pass.
	Pass func(d time.Duration)
}

// MaxPolls limits the polls of World.Poll, four per tick. No crash delays an instance for that long.
const MaxPolls = 1000

// Poll calls done and lets time pass until done returns true. It returns false after MaxPolls calls.
func (w World) Poll(done func() bool) bool {
	for range MaxPolls {
		if done() {
			return true
		}
		w.Pass(w.Tick / 4)
	}
	return false
}

// Until lets time pass until the instance exists and has the wanted status.
func (w World) Until(ctx context.Context, id string, wanted func(s client.Status) bool) error {
	var s client.Status
	var err error
	if w.Poll(func() bool {
		s, err = w.Client.Status(ctx, id)
		return err == nil && wanted(s)
	}) {
		return nil
	}
	return errors.Join(fmt.Errorf("instance %q does not reach the wanted status: %s, custom status %s", id, s.Status,
		s.CustomStatus), err)
}

// UntilStatus lets time pass until the instance has this custom status.
func (w World) UntilStatus(ctx context.Context, id, want string) error {
	return w.Until(ctx, id, func(s client.Status) bool { return string(s.CustomStatus) == fmt.Sprintf("%q", want) })
}

// UntilEnded lets time pass until the instance has ended.
func (w World) UntilEnded(ctx context.Context, id string) error {
	return w.Until(ctx, id, func(s client.Status) bool { return s.Status.Terminal() })
}

// UntilResponse repeats a call until it succeeds or returns an UpdateError. A crash can make an attempt fail.
func (w World) UntilResponse(call func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	w.Poll(func() bool {
		result, err = call()
		_, responded := errors.AsType[*client.UpdateError](err)
		return err == nil || responded
	})
	return result, err
}

// UntilQuery repeats a query until it returns the wanted result.
func (w World) UntilQuery(ctx context.Context, id, query string, input, want any) error {
	var result []byte
	var err error
	if w.Poll(func() bool {
		result, err = w.Client.Query(ctx, id, query, input)
		return err == nil && Compact(result) == fmt.Sprint(want)
	}) {
		return nil
	}
	return errors.Join(fmt.Errorf("instance %q: query %q returns %s, want %v", id, query, result, want), err)
}

// Compact removes the white space that a local Lambda adds to the JSON that functions return.
func Compact(doc []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return string(doc)
	}
	return b.String()
}

// Run registers a function as the orchestration of the scenario, and makes the additional registrations.
func Run[In, Out any](
	fn func(*perdure.OrchestrationContext, In) (Out, error), more ...func(r *perdure.Registry),
) func(r *perdure.Registry, name string) {
	return func(r *perdure.Registry, name string) {
		perdure.AddOrchestration(r, name, fn)
		for _, add := range more {
			add(r)
		}
	}
}

// Also registers an additional orchestration.
func Also[In, Out any](
	name string, fn func(*perdure.OrchestrationContext, In) (Out, error), opts ...perdure.OrchestrationOption,
) func(r *perdure.Registry) {
	return func(r *perdure.Registry) { perdure.AddOrchestration(r, name, fn, opts...) }
}

// Holder completes activities with their tokens. A *client.Client is a Holder.
type Holder interface {
	CompleteActivity(ctx context.Context, token string, result any) error
	FailActivity(ctx context.Context, token string, err error) error
	HeartbeatActivity(ctx context.Context, token string, details any) (provider.CancelInfo, error)
}
