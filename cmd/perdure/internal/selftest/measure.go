package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/history"
)

// Latency has the distribution of a latency in milliseconds.
type Latency struct {
	Name    string  `json:"name"`
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	Max     float64 `json:"max"`
}

// Cost compares the estimate from the history of an instance with the forecast of docs/operate/cost.md, in dollars per
// million instances.
type Cost struct {
	Name      string  `json:"name"`
	Estimated float64 `json:"estimated"`
	Forecast  float64 `json:"forecast"`
}

// scheduledTimers is the lateness of timers with a schedule.
const scheduledTimers = "timer with schedule, late by"

// Prices of building blocks in docs/operate/cost.md, in dollars per million.
const (
	priceInstance       = 6.88
	priceInlineInstance = 5.13
	priceStep           = 4.04
	priceInlineStep     = 0.66
)

const (
	warmSteps = 20 // of an instance that measures steps
	cancels   = 5
	timers    = 5
)

func newLatency(name string, all []time.Duration) (Latency, error) {
	if len(all) == 0 {
		return Latency{}, fmt.Errorf("measure %s: no samples", name)
	}
	slices.Sort(all)
	const half = 2
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return Latency{
		Name: name, Samples: len(all), P50: milliseconds(all[len(all)/half]), Max: milliseconds(all[len(all)-1]),
	}, nil
}

// measure measures latencies, while nothing else runs in the hub.
func (h *hub) measure(ctx context.Context, short bool, report *Report) error {
	shortTimer, scheduledTimer := 10*time.Second, 130*time.Second //nolint:mnd // see options.parameters
	if short {
		shortTimer, scheduledTimer = 2*time.Second, 8*time.Second //nolint:mnd // see options.parameters
	}
	for _, m := range []struct {
		name    string
		measure func(ctx context.Context, name string) ([]time.Duration, error)
	}{
		{"step", func(ctx context.Context, name string) ([]time.Duration, error) {
			return h.steps(ctx, name, app.Steps, report, priceInstance, priceStep)
		}},
		{"inline step", func(ctx context.Context, name string) ([]time.Duration, error) {
			return h.steps(ctx, name, app.InlineSteps, report, priceInlineInstance, priceInlineStep)
		}},
		{"cancel seen by activity", h.seenCancels},
		{"timer, late by", func(ctx context.Context, name string) ([]time.Duration, error) {
			return h.lateness(ctx, name, shortTimer)
		}},
		{scheduledTimers, func(ctx context.Context, name string) ([]time.Duration, error) {
			return h.lateness(ctx, name, scheduledTimer)
		}},
	} {
		samples, err := m.measure(ctx, m.name)
		if err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		l, err := newLatency(m.name, samples)
		if err != nil {
			return err
		}
		report.Latencies = append(report.Latencies, l)
		h.printf("measured %s: p50 %.0f ms", l.Name, l.P50)
	}
	return nil
}

// steps runs two instances of consecutive activities and returns the times between the turns of the second one, which
// is warm.
func (h *hub) steps(
	ctx context.Context, name, orchestration string, report *Report, instance, step float64,
) (all []time.Duration, err error) {
	id := "measure-" + orchestration
	for _, suffix := range []string{"-cold", ""} {
		if _, err := h.complete(ctx, orchestration, id+suffix, warmSteps); err != nil {
			return nil, err
		}
	}
	var last time.Time
	for e, err := range h.client.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		if e.Kind != history.ActivityCompleted {
			continue
		}
		if !last.IsZero() {
			all = append(all, e.Time.Sub(last))
		}
		last = e.Time
	}
	cost, err := h.admin.EstimateCost(ctx, id)
	if err != nil {
		return nil, err
	}
	const million = 1e6
	report.Cost = append(report.Cost, Cost{
		Name: fmt.Sprintf("instance of %d x %s", warmSteps, name), Estimated: cost.Dollars * million,
		Forecast: instance + warmSteps*step,
	})
	return all, nil
}

// complete runs an instance, which must complete.
func (h *hub) complete(ctx context.Context, orchestration, id string, input any) (client.Status, error) {
	if _, err := h.client.Start(ctx, orchestration, input, client.WithInstanceID(id)); err != nil {
		return client.Status{}, err
	}
	s, err := h.client.Wait(ctx, id)
	if err == nil && s.Status != client.StatusCompleted {
		err = fmt.Errorf("instance %s is %s: %+v", id, s.Status, s.Failure)
	}
	return s, err
}

// seenCancels cancels running activities, and returns the times until they saw it.
func (h *hub) seenCancels(ctx context.Context, _ string) (all []time.Duration, err error) {
	for n := range cancels {
		id := fmt.Sprintf("measure-cancel-%d", n)
		if _, err := h.client.Start(ctx, app.Standby, struct{}{}, client.WithInstanceID(id)); err != nil {
			return nil, err
		}
		if err := h.eventually(ctx, func() error { return h.isRunning(ctx, id) }); err != nil {
			return nil, err
		}
		if err := h.client.Cancel(ctx, id, "self-test"); err != nil {
			return nil, err
		}
		if _, err := h.client.Wait(ctx, id); err != nil {
			return nil, err
		}
		if err := h.eventually(ctx, func() error {
			took, err := h.seenCancel(ctx, id)
			if err == nil {
				all = append(all, took)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isRunning returns an error until the activity of an instance has sent a heartbeat.
func (h *hub) isRunning(ctx context.Context, id string) error {
	p, err := h.client.Pending(ctx, id, "", 0)
	if err != nil {
		return err
	}
	for i := range p.Items {
		if !p.Items[i].LastHeartbeatAt.IsZero() {
			return nil
		}
	}
	return fmt.Errorf("activity of %s does not run", id)
}

// errNotSeen is returned until the worker has reported when it observed a cancel.
var errNotSeen = errors.New("worker has not reported that it observed the cancel")

// seenCancel returns the time between the decision of a cancel and its observation.
func (h *hub) seenCancel(ctx context.Context, id string) (time.Duration, error) {
	for c, err := range h.client.Cancellations(ctx, id, "") {
		if err != nil {
			return 0, err
		}
		if c.Target == client.TargetActivity && !c.SeenAt.IsZero() {
			return c.SeenAt.Sub(c.DecidedAt), nil
		}
	}
	return 0, errNotSeen
}

// lateness runs timers concurrently and returns how late they were.
func (h *hub) lateness(ctx context.Context, _ string, d time.Duration) (all []time.Duration, err error) {
	id := func(n int) string { return fmt.Sprintf("measure-timer-%s-%d", d, n) }
	for n := range timers {
		if _, err := h.client.Start(ctx, app.Lateness, d, client.WithInstanceID(id(n))); err != nil {
			return nil, err
		}
	}
	for n := range timers {
		s, err := h.client.Wait(ctx, id(n))
		if err != nil {
			return nil, err
		}
		late, err := client.Result[time.Duration](s)
		if err != nil {
			return nil, err
		}
		if late < 0 {
			return nil, fmt.Errorf("instance %s: timer fired %v early", id(n), -late)
		}
		all = append(all, late)
	}
	return all, nil
}
