package scale

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/tests/internal/latency"
)

// Recovery has the durations of the recovery of blocked instances, in virtual time with the latencies of AWS.
type Recovery struct {
	Instances int
	// Blocks is the time from the first event until the last instance is Blocked.
	Blocks time.Duration
	// Woken is the time from the deployment of the fix until all instances are woken, and Recovered the time until the
	// last one has ended.
	Woken, Recovered time.Duration
}

// sendsAtOnce is the number of clients that send concurrently.
const sendsAtOnce = 100

// MeasureRecovery blocks instances by a faulty deployment, and unblocks them by another one. It must be called in a
// synctest bubble.
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

	if err := start("ahead"); err != nil { // reads the builds before the other starts
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
	if err := h.Deploy(ctx, waits(true), "fixed"); err != nil {
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

// waits returns a build of an orchestration that waits for an event. The wrong build sleeps first.
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

// forEach calls do with each instance ID, in sendsAtOnce goroutines.
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

// last returns the number of instances with a status, and the time from since until the last of them changed.
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
