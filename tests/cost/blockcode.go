package cost

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/schedule"
)

// Names of the orchestrations and activities of the building blocks.
const (
	staggeredName = "Staggered"
	eventsName    = "Events"
	senderName    = "Sender"
	parentName    = "Parent"
	napsName      = "Naps"
	approvalsName = "Approvals"
	flakyName     = "Flaky"
	keptName      = "Kept"
	freightName   = "Freight"
	echoName      = "Echo"
	// OrderName is the name of the orchestration in the example of docs/operate/cost.md.
	OrderName  = "Order"
	eventName  = "go"
	queryName  = "seen"
	updateName = "add"
)

// addBlocks registers the code of the building blocks.
func addBlocks(r *perdure.Registry) {
	perdure.AddActivity(r, "stagger", stagger)
	perdure.AddActivity(r, "fail", failUntil)
	perdure.AddActivity(r, "pack", pack)
	perdure.AddOrchestration(r, staggeredName, staggered)
	perdure.AddOrchestration(r, eventsName, events)
	perdure.AddOrchestration(r, senderName, sender)
	perdure.AddOrchestration(r, parentName, parent)
	perdure.AddOrchestration(r, napsName, naps)
	perdure.AddOrchestration(r, approvalsName, approvals)
	perdure.AddOrchestration(r, flakyName, flaky)
	perdure.AddOrchestration(r, keptName, keptChain, perdure.WithRetention(kept))
	perdure.AddOrchestration(r, freightName, freight)
	perdure.AddOrchestration(r, echoName, echo)
	perdure.AddOrchestration(r, OrderName, order, perdure.WithRetention(kept))
	schedule.Register(r)
}

// keptChain is a chain, registered with a retention.
func keptChain(ctx *perdure.OrchestrationContext, n int) (int, error) { return inARow(ctx, n) }

// kept is the retention of the instances that a sweep purges.
const kept = 24 * time.Hour

// apart is the time between the ends of two staggered activities.
const apart = 200 * time.Millisecond

func stagger(ctx context.Context, n int) (int, error) {
	select {
	case <-time.After(time.Duration(n) * apart):
		return n, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// staggered is a fan-out whose activities end one after the other.
func staggered(ctx *perdure.OrchestrationContext, n int) (int, error) {
	all := make([]perdure.Awaitable, n)
	for i := range all {
		all[i] = perdure.CallActivity(ctx, stagger, i+1)
	}
	return n, perdure.WhenAll(ctx, all...)
}

// events waits for n events, and handles queries and updates.
func events(ctx *perdure.OrchestrationContext, n int) (int, error) {
	seen := 0
	err := errors.Join(
		perdure.SetQueryHandler(ctx, queryName, func(bool) (int, error) { return seen, nil }),
		perdure.SetUpdateHandler(ctx, updateName, add))
	for seen = 0; err == nil && seen < n; seen++ {
		_, err = perdure.WaitForExternalEvent[any](ctx, eventName).Await(ctx)
	}
	return seen, err
}

func add(_ *perdure.OrchestrationContext, n int) (int, error) { return n + 1, nil }

// sender sends n events to the receiver of its instance.
func sender(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for range n {
		if _, err := perdure.RaiseEvent(ctx, receiverOf(ctx.InstanceID()), eventName, true).Await(ctx); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func receiverOf(id string) string { return "receiver-of-" + id }

// parent runs n children of one activity, one after the other.
func parent(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for range n {
		if _, err := perdure.CallSubOrchestration(ctx, chain, 1).Await(ctx); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// nap has the number and the duration of consecutive timers.
type nap struct {
	N int
	D time.Duration
}

func naps(ctx *perdure.OrchestrationContext, in nap) (int, error) {
	for range in.N {
		if _, err := perdure.CreateTimer(ctx, in.D).Await(ctx); err != nil {
			return 0, err
		}
	}
	return in.N, nil
}

// approvals waits for n events, each with a timer as its deadline.
func approvals(ctx *perdure.OrchestrationContext, in nap) (int, error) {
	for range in.N {
		approved, deadline := perdure.WaitForExternalEvent[bool](ctx, eventName), perdure.CreateTimer(ctx, in.D)
		if _, err := perdure.Select(ctx, approved, deadline); err != nil {
			return 0, err
		}
	}
	return in.N, nil
}

// failUntil fails in its first n attempts.
func failUntil(ctx context.Context, n int) (int, error) {
	if perdure.ActivityInfoFrom(ctx).Attempt <= n {
		return 0, errors.New("not yet")
	}
	return n, nil
}

func flaky(ctx *perdure.OrchestrationContext, n int) (int, error) {
	// A queue delay has whole seconds, so the worker waits for the remaining time: half a second on average.
	policy := perdure.RetryPolicy{InitialInterval: 10*time.Second + time.Second/2, BackoffCoefficient: 1}
	return perdure.CallActivity(ctx, failUntil, n, perdure.WithRetry(policy)).Await(ctx)
}

// load has the number of activities of an orchestration, and the sizes of their payloads in bytes.
type load struct {
	N, In, Out int
}

// parcel is the input of an activity: a payload, and the size of the result.
type parcel struct {
	Data string
	Out  int
}

// random returns a text that does not compress well.
func random(bytes int) string {
	r := rand.New(rand.NewPCG(1, uint64(bytes)))
	raw := make([]byte, bytes)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)[:bytes]
}

func pack(_ context.Context, p parcel) (string, error) { return random(p.Out), nil }

func freight(ctx *perdure.OrchestrationContext, l load) (int, error) {
	for range l.N {
		if _, err := perdure.CallActivity(ctx, pack, parcel{random(l.In), l.Out}).Await(ctx); err != nil {
			return 0, err
		}
	}
	return l.N, nil
}

// order reserves, charges and notifies, waits up to 30 minutes for an approval, and ships.
func order(ctx *perdure.OrchestrationContext, n int) (int, error) {
	const before = 3
	if _, err := inARow(ctx, before); err != nil {
		return 0, err
	}
	approved, deadline := perdure.WaitForExternalEvent[bool](ctx, eventName), perdure.CreateTimer(ctx, 30*time.Minute)
	if _, err := perdure.Select(ctx, approved, deadline); err != nil {
		return 0, err
	}
	return inARow(ctx, n-before)
}

// echo is an orchestration with the input p.Data and an output of p.Out bytes.
func echo(_ *perdure.OrchestrationContext, p parcel) (string, error) { return random(p.Out), nil }

// raise returns a driver that raises n events, each after some time.
func raise(n int, after time.Duration, data any) driver {
	return func(ctx context.Context, c *client.Client, id string) error {
		for range n {
			time.Sleep(after)
			if err := c.RaiseEvent(ctx, id, eventName, data); err != nil {
				return err
			}
		}
		return nil
	}
}

// ask returns a driver that sends n queries, m updates, and the event that ends the instance.
func ask(n, m int) driver {
	return func(ctx context.Context, c *client.Client, id string) error {
		time.Sleep(begins)
		for range n {
			if _, err := c.Query(ctx, id, queryName, true); err != nil {
				return err
			}
			time.Sleep(time.Minute)
		}
		for range m {
			if _, err := c.Update(ctx, id, updateName, 1); err != nil {
				return err
			}
			time.Sleep(time.Minute)
		}
		return c.RaiseEvent(ctx, id, eventName, true)
	}
}

// receive returns a driver that starts the receiver of a sender's events.
func receive(n int) driver {
	return func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.Start(ctx, eventsName, n, client.WithInstanceID(receiverOf(id)))
		return err
	}
}

// repeat returns a driver that creates a schedule, which starts n chains of one activity.
func repeat(n int, every string, interval time.Duration) driver {
	return func(ctx context.Context, c *client.Client, _ string) error {
		from := time.Now()
		return c.Schedules().Put(ctx, schedule.Schedule{
			ID: "often", Orchestration: chainName, Input: []byte("1"), Expression: "rate(" + every + ")",
			From: from, Until: from.Add(time.Duration(n)*interval + time.Second),
		})
	}
}

// sweep returns a function that runs the sweeper n times, every two minutes, after the retention of the instances.
func sweep(n int) func(ctx context.Context, h *simhub.Hub, invoked func(string, time.Duration)) error {
	return func(ctx context.Context, h *simhub.Hub, invoked func(string, time.Duration)) error {
		time.Sleep(2*kept + time.Hour)
		for range n {
			time.Sleep(simhub.SweepInterval)
			began := time.Now()
			if _, err := h.Renewer.Sweep(ctx); err != nil {
				return err
			}
			invoked(Renewer, time.Since(began))
		}
		return nil
	}
}
