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
	"github.com/perdure/perdure/internal/latency"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/cost"
)

// Shape is an orchestration whose steps are timed.
type Shape struct {
	Name          string
	Orchestration string
	Input         int
	// Of is what is timed.
	Of string
	// Drive is what a client does once the instance is started; nil is nothing.
	Drive func(ctx context.Context, c *client.Client, id string, watch *Watch) error
}

// Measured is how long what a shape is timed by took.
type Measured struct {
	Shape    Shape
	InFlight int
	Samples  int
	P50, P99 time.Duration
	Longest  time.Duration
}

const (
	// concurrency is how many invocations of each function run at once at most: the orchestrator and one worker share
	// an account's first quota of 1,000.
	concurrency = 500
	// Instances come in rounds, each apart after the one before, which is longer than a process uses the builds that it
	// has read: as many as have enough activities together, and enough instances where one is alone.
	enoughActivities = 10_000
	enoughAlone      = 100
	apart            = 62 * time.Second
	// settled is how much virtual time everything is given to be over, behind the last start.
	settled = 10 * time.Minute
)

// Measure times a shape with so many instances in flight, in the bubble that it is called in.
func Measure(ctx context.Context, s *Shape, inFlight int) (*Measured, error) {
	watch := &Watch{begun: map[string]time.Time{}}
	h, err := simhub.New(simhub.Options{
		Registry: registry(watch), Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler),
		Intercept: intercept(latency.Current(), latency.Drawn(1)),
	})
	if err != nil {
		return nil, fmt.Errorf("scale: %s: %w", s.Name, err)
	}
	defer h.Close()
	if err := run(ctx, h, s, inFlight, watch); err != nil {
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

// run starts the instances, those of a round over a second, and returns when all are over.
func run(ctx context.Context, h *simhub.Hub, s *Shape, inFlight int, watch *Watch) error {
	c := client.New(h.Provider)
	rounds := max(1, enoughActivities/(inFlight*s.Input))
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

// lead is how long before a round the builds are read.
const lead = time.Second

// startsAt is when instance number i starts: those of a round are spread over a second.
func startsAt(i, inFlight int) time.Duration {
	round, place := i/inFlight, i%inFlight
	return lead + apart*time.Duration(round) + time.Second*time.Duration(place)/time.Duration(inFlight)
}

// begin starts one instance before a round, that nothing is timed of: what a process reads once a minute, the builds,
// is behind it then. In a bubble, starts side by side would wait for the lock of that read, and time does not pass
// while one waits for a lock.
func begin(ctx context.Context, c *client.Client, round int) error {
	_, err := c.Start(ctx, "Chain", 1, client.WithInstanceID(fmt.Sprintf("ahead-%d", round)))
	return err
}

// intercept lets calls take their time, and batches theirs on the way to a function.
func intercept(l *latency.List, take latency.Source) simaws.Interceptor {
	calls, hops := l.Intercept(take), l.Hops(take)
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Service == "Lambda" {
			return hops(ctx, c, func() error { return work(c, next) })
		}
		return calls(ctx, c, next)
	}
}

// work is what a mapping does: an invocation takes its own time before the rest, which none of its calls is behind
// then.
func work(c simaws.Call, next func() error) error {
	if c.Operation != "Invoke" {
		return next()
	}
	time.Sleep(cost.OwnTime[cost.FunctionOf(c.Queue)])
	return next()
}

// Watch takes times. The code of the shapes tells it what happens, in the process that it happens in: it runs once,
// since nothing here is cold.
type Watch struct {
	mu    sync.Mutex
	begun map[string]time.Time
	took  []time.Duration
}

// begin says that what has this name begins now.
func (w *Watch) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[name] = time.Now()
}

// end says that it is over, and takes how long it has been, where it had begun.
func (w *Watch) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.begun[name]; ok {
		w.took = append(w.took, time.Since(at))
	}
}

// step ends what has this name, and begins it anew.
func (w *Watch) step(name string) {
	w.end(name)
	w.begin(name)
}

// activityOf is the instance whose activity runs.
func activityOf(ctx context.Context) string { return perdure.ActivityInfoFrom(ctx).InstanceID }
