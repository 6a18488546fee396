package scale

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/latency"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Recovery is how long blocked instances take, in virtual time with AWS's latencies.
type Recovery struct {
	Instances int
	// Blocks is from the event that blocks all of them until the last is Blocked.
	Blocks time.Duration
	// Woken is from the look of the watch after the fix is deployed until all are woken, and Recovered until the last
	// is over.
	Woken, Recovered time.Duration
}

// sendsAtOnce are the clients that raise events side by side.
const sendsAtOnce = 100

// MeasureRecovery has a deployment block instances, and another one recover them, in the bubble that it is called in.
func MeasureRecovery(ctx context.Context, instances int) (r Recovery, err error) {
	h, err := simhub.New(simhub.Options{
		Registry: waits(true), BuildID: "good", Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler),
		Intercept: intercept(latency.Current(), latency.Drawn(1)),
	})
	if err != nil {
		return r, fmt.Errorf("scale: %w", err)
	}
	defer h.Close()
	c := client.New(h.Provider)
	each := func(do func(id string) error) error { return forEach(instances, do) }
	start := func(id string) error {
		_, err := c.Start(ctx, "waits", 0, client.WithInstanceID(id))
		return err
	}
	raise := func(id string) error { return c.RaiseEvent(ctx, id, "go", 1) }

	if err := start("ahead"); err != nil { // the builds are read once, before all others
		return r, fmt.Errorf("scale: %w", err)
	}
	if err := each(start); err != nil {
		return r, fmt.Errorf("scale: %w", err)
	}
	h.ServeFor(ctx, settled)
	if err := h.Deploy(ctx, waits(false), "bad"); err != nil {
		return r, fmt.Errorf("scale: %w", err)
	}
	began := time.Now()
	if err := each(raise); err != nil {
		return r, fmt.Errorf("scale: %w", err)
	}
	h.ServeFor(ctx, settled)
	if r.Instances, r.Blocks, err = last(ctx, c, provider.StatusBlocked, began); err != nil {
		return r, err
	}

	began = time.Now()
	if err := h.Deploy(ctx, waits(true), "mended"); err != nil {
		return r, fmt.Errorf("scale: %w", err)
	}
	r.Woken = time.Since(began)
	h.ServeFor(ctx, settled)
	recovered, took, err := last(ctx, c, provider.StatusCompleted, began)
	if err == nil && recovered != instances {
		err = fmt.Errorf("scale: %d of %d instances have recovered", recovered, instances)
	}
	r.Recovered = took
	return r, err
}

// waits are two builds of an orchestration that waits for an event. The wrong one asks for something else first.
func waits(right bool) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if !right {
			_ = perdure.Sleep(ctx, time.Hour)
		}
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	})
	return r
}

// forEach does something with the id of each instance, some side by side.
func forEach(instances int, do func(id string) error) error {
	errs := make([]error, sendsAtOnce)
	var clients sync.WaitGroup
	for n := range sendsAtOnce {
		clients.Go(func() {
			for i := n; i < instances && errs[n] == nil; i += sendsAtOnce {
				errs[n] = do(fmt.Sprintf("order-%05d", i))
			}
		})
	}
	clients.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// last returns how many instances have a status, and when the last of them changed.
func last(ctx context.Context, c *client.Client, status client.RuntimeStatus, since time.Time) (
	n int, took time.Duration, err error,
) {
	for s, err := range c.List(ctx, client.ListQuery{Status: status}) {
		if err != nil {
			return n, took, fmt.Errorf("scale: %w", err)
		}
		n++
		took = max(took, s.UpdatedAt.Sub(since))
	}
	return n, took, nil
}
