package perduretest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// NewDeployed returns an Env for a deployed hub, for example from dynamo.Open. The same test body can then run in a
// deployed hub and in virtual time. A deployed hub uses real time. Advance sleeps, and functions of AfterFunc run
// during Advance and waits. A wait fails with an *IdleError after five minutes, or after the duration of
// WithHangTimeout.
//
// Client, History, CompareGolden and Now work as in virtual time. RunUntilIdle, Stub, Calls, Deploy, CrashAt, Outage,
// Expect, TableClient and RunSweeper fail the test. Options for virtual time have no effect.
//
// If the test passes, all instances that it started are terminated and purged. If it fails, the instances are kept.
func NewDeployed(t *testing.T, hub client.Backend, opts ...Option) *Env {
	t.Helper()
	o := options{hangTimeout: defaultDeployedTimeout}
	for _, opt := range opts {
		opt.apply(&o)
	}
	e := &Env{t: t, network: newNetwork(&options{})}
	e.deployed = &deployedHub{Backend: hub, env: e, hangTimeout: o.hangTimeout}
	e.client = client.New(e.deployed, o.clientOptions()...)
	if backend, ok := unwrap.As[admin.Backend](hub); ok {
		e.admin = admin.New(backend, o.adminOptions()...)
	}
	t.Cleanup(e.deployed.cleanUp)
	return e
}

// defaultDeployedTimeout is the default time limit of a Wait in a deployed hub.
const defaultDeployedTimeout = 5 * time.Minute

// deployedHub is a deployed hub for the Client of an Env.
type deployedHub struct {
	client.Backend

	env         *Env
	hangTimeout time.Duration

	mu      sync.Mutex
	started []string
}

// Unwrap returns the hub, so that the client can use the optional interfaces of the hub.
func (d *deployedHub) Unwrap() client.Backend { return d.Backend }

// StartOrchestration records the started instance.
func (d *deployedHub) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	in, err := d.Backend.StartOrchestration(ctx, s)
	if err == nil {
		d.record(s.InstanceID)
	}
	return in, err
}

// PrepareStart records the instance that the transaction of the caller may start.
func (d *deployedHub) PrepareStart(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	preparer, ok := unwrap.As[provider.StartPreparer](d.Backend)
	if !ok {
		return nil, client.ErrPrepareStartUnsupported
	}
	prepared, err := preparer.PrepareStart(ctx, s)
	if err == nil {
		d.record(s.InstanceID)
	}
	return prepared, err
}

func (d *deployedHub) record(instanceID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started = append(d.started, instanceID)
}

// Intervals at which a deployed hub is polled.
const (
	firstPollInterval = 50 * time.Millisecond
	maxPollInterval   = 2 * time.Second
)

// WaitInstance implements client.Waiter.
func (d *deployedHub) WaitInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	err = d.WaitUpdate(ctx, instanceID, func(ctx context.Context) (done bool, err error) {
		in, err = d.ReadInstance(ctx, instanceID)
		return in.Status.Terminal(), err
	})
	return in, err
}

// WaitUpdate implements client.UpdateWaiter.
func (d *deployedHub) WaitUpdate(
	ctx context.Context, instanceID string, poll func(context.Context) (done bool, err error),
) error {
	began := time.Now()
	for pause := firstPollInterval; ; pause = min(2*pause, maxPollInterval) {
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		if waited := time.Since(began); waited > d.hangTimeout {
			in, err := d.ReadInstance(ctx, instanceID)
			if err != nil {
				return err
			}
			idle := idleCheck{d.env}.idle(ctx, &in)
			idle.Waited = waited.Round(time.Second)
			return idle
		}
		if err := d.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits in real time and runs the functions of AfterFunc.
func (d *deployedHub) sleep(ctx context.Context, duration time.Duration) error {
	until := time.Now().Add(duration)
	for {
		at, planned := d.env.agenda.next()
		if !planned || at.After(until) {
			return sleep.For(ctx, time.Until(until))
		}
		if err := sleep.For(ctx, time.Until(at)); err != nil {
			return err
		}
		d.env.agenda.run()
	}
}

// cleanupTimeout limits the cleanup after a test.
const cleanupTimeout = time.Minute

// cleanUp removes the instances that a passed test has started.
func (d *deployedHub) cleanUp() {
	t := d.env.t
	if t.Failed() {
		t.Logf("perduretest: instances kept in the hub: %s", quoted(d.started))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for _, id := range d.started {
		s, err := d.env.client.Status(ctx, id)
		if errors.Is(err, client.ErrNotFound) {
			continue // purged, or prepared and never committed
		}
		if err == nil && !s.Status.Terminal() {
			if err = d.env.client.Terminate(ctx, id, "test "+t.Name()+" has ended"); err == nil {
				_, err = d.env.client.Wait(ctx, id)
			}
		}
		if err == nil {
			err = d.env.client.Purge(ctx, id)
		}
		if err != nil {
			t.Logf("perduretest: instance %q was not removed from the hub: %v", id, err)
		}
	}
}

// reject fails a test that calls a method for virtual time with a deployed hub. d is nil in virtual time.
func (d *deployedHub) reject(t *testing.T, method string) {
	t.Helper()
	if d != nil {
		t.Fatalf("perduretest: %s is not supported in a deployed hub", method)
	}
}
