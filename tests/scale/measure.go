package scale

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/cost"
	"github.com/perdure/perdure/tests/internal/latency"
)

// Shape is an orchestration whose steps are timed.
type Shape struct {
	Name          string
	Orchestration string
	Input         int
	// Of is the measured time: step, total or cancel.
	Of string
	// Drive makes the calls of a client after the start. It is nil if there are none.
	Drive func(ctx context.Context, c *client.Client, id string, watch *Watch) error
}

// Measured has the measured times of a shape.
type Measured struct {
	Shape    Shape
	InFlight int
	Samples  int
	P50, P99 time.Duration
	Longest  time.Duration
}

const (
	// concurrency is the maximum number of concurrent invocations of each function. The orchestrator and one worker
	// share the default quota of an account, which is 1,000.
	concurrency = 500
	// Instances start in rounds. The interval between rounds exceeds the time for which a process caches the builds.
	// If one instance is in flight, the rounds have at least enoughAlone instances.
	enoughAlone = 100
	apart       = 62 * time.Second
	// settled is the virtual time after the last start, in which all instances end.
	settled = 10 * time.Minute
)

// Measure measures a shape with a number of instances in flight, in as many rounds as run at least a number of
// activities. It must be called in a synctest bubble.
func Measure(ctx context.Context, s *Shape, inFlight, activities int) (*Measured, error) {
	watch := &Watch{begun: map[string]time.Time{}}
	h, err := simhub.New(simhub.Options{
		Registry: registry(watch), Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler),
		Intercept: intercept(latency.Current(), latency.Drawn(1)),
	})
	if err != nil {
		return nil, fmt.Errorf("scale: %s: %w", s.Name, err)
	}
	defer h.Close()
	if err := run(ctx, h, s, inFlight, activities, watch); err != nil {
		return nil, fmt.Errorf("scale: %s: %w", s.Name, err)
	}
	took := watch.took
	if len(took) == 0 {
		return nil, fmt.Errorf("scale: %s: nothing was timed", s.Name)
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	return &Measured{
		Shape: *s, InFlight: inFlight, Samples: len(took), P50: at(0.5), P99: at(0.99), Longest: took[len(took)-1],
	}, nil
}

// run starts the instances of each round within a second, and returns when all instances have ended.
func run(ctx context.Context, h *simhub.Hub, s *Shape, inFlight, activities int, watch *Watch) error {
	c := client.New(h.Provider)
	rounds := max(1, activities/(inFlight*s.Input))
	if inFlight == 1 {
		rounds = max(rounds, enoughAlone)
	}
	errs := make([]error, rounds*inFlight)
	var started sync.WaitGroup
	started.Go(func() { h.ServeFor(ctx, apart*time.Duration(rounds)+settled) })
	ahead := make([]error, rounds)
	for round := range ahead {
		started.Go(func() {
			time.Sleep(startsAt(round*inFlight, inFlight) - lead)
			ahead[round] = begin(ctx, c, round)
		})
	}
	for i := range errs {
		started.Go(func() {
			time.Sleep(startsAt(i, inFlight))
			id := fmt.Sprintf("order-%05d", i)
			if _, errs[i] = c.Start(ctx, s.Orchestration, s.Input, client.WithInstanceID(id)); errs[i] == nil &&
				s.Drive != nil {
				errs[i] = s.Drive(ctx, c, id, watch)
			}
		})
	}
	started.Wait()
	for i, err := range slices.Concat(ahead, errs) {
		if err != nil {
			return fmt.Errorf("start %d: %w", i, err)
		}
	}
	return nil
}

// lead is the time between the read of the builds and the round.
const lead = time.Second

// startsAt returns the start time of instance i. The starts of a round are spread over a second.
func startsAt(i, inFlight int) time.Duration {
	round, place := i/inFlight, i%inFlight
	return lead + apart*time.Duration(round) + time.Second*time.Duration(place)/time.Duration(inFlight)
}

// begin starts one instance before a round, so that the process has read the builds. This instance is not measured. In
// a bubble, concurrent starts would wait for the lock of that read, and virtual time does not pass during a wait for a
// lock.
func begin(ctx context.Context, c *client.Client, round int) error {
	_, err := c.Start(ctx, "Chain", 1, client.WithInstanceID(fmt.Sprintf("ahead-%d", round)))
	return err
}

// intercept returns an interceptor that adds the latencies of calls, and of batches between a queue and a function.
func intercept(l *latency.List, take latency.Source) simaws.Interceptor {
	calls, hops := l.Intercept(take), l.Hops(take)
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Service == "Lambda" {
			return hops(ctx, c, func() error { return work(c, next) })
		}
		return calls(ctx, c, next)
	}
}

// work runs a call of a mapping. An invocation first takes its own time, so all of its calls happen afterwards.
func work(c simaws.Call, next func() error) error {
	if c.Operation != "Invoke" {
		return next()
	}
	time.Sleep(cost.OwnTime[cost.FunctionOf(c.Queue)])
	return next()
}

// Watch measures times. The code of the shapes calls it. No instance is replayed here, so the code of each step runs
// once.
type Watch struct {
	mu    sync.Mutex
	begun map[string]time.Time
	took  []time.Duration
}

// begin records the begin of the interval with this name.
func (w *Watch) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[name] = time.Now()
}

// end records the duration of the interval with this name, if it has begun.
func (w *Watch) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.begun[name]; ok {
		w.took = append(w.took, time.Since(at))
	}
}

// step ends the interval with this name, and begins the next one.
func (w *Watch) step(name string) {
	w.end(name)
	w.begin(name)
}

// activityOf returns the instance ID of the running activity.
func activityOf(ctx context.Context) string { return perdure.ActivityInfoFrom(ctx).InstanceID }
