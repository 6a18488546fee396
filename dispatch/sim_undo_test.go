package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Ten thousand orders reserve, charge and ship. Each call has WaitForCancellation, and Compensate undoes the calls when
// the order is cancelled, times out or fails. At the same time, processes crash, calls fail or are executed twice, and
// messages are repeated. A witness observes the running code and checks that no undo starts before the end of its call.

// step is one call of an order and the behavior of its activity.
type step struct {
	What  string
	Takes time.Duration
	// CleanupTime is the time for which the activity runs after its context has ended. A negative value means until it
	// is done.
	CleanupTime time.Duration
	// Fails is the number of attempts that fail first. Child makes the call in a separate order.
	Fails int
	Child bool
}

// purchase is the input of an order. Key identifies it for the witness.
type purchase struct {
	Key   string
	Steps []step
	// Within is a timeout for the order. FailsAfter makes it fail while its calls run. 0 means neither.
	Within, FailsAfter time.Duration
	// At is the time at which a client cancels the order. 0 means never.
	At time.Duration
}

// undoInput is the input of an undo.
type undoInput struct{ Key, Ended string }

// counter records the running code of all orders.
type counter struct {
	mu     sync.Mutex
	runs   map[string][]*running // by the key of the call
	undone map[string]int
	ends   map[string]int
	errs   []error
}

// running is a run of an activity's code.
type running struct {
	ctx   context.Context //nolint:containedctx // ends when its process crashes
	ended bool
	// cancelledAt is when its context ended. lost is set if its worker lost its lease or stopped.
	cancelledAt time.Time
	lost        bool
}

// ordersGracePeriod is Options.CancellationGracePeriod.
const ordersGracePeriod = 10 * time.Second

// over reports whether a run has ended, because it has returned, its process has crashed, or its worker has abandoned
// it.
func (r *running) over() bool {
	_, died := simhub.Process(r.ctx)
	return r.ended || died || r.lost || !r.cancelledAt.IsZero() && time.Since(r.cancelledAt) >= ordersGracePeriod
}

func (c *counter) make(ctx context.Context, key string, s step) (string, error) {
	r := &running{ctx: ctx}
	c.mu.Lock()
	c.runs[key] = append(c.runs[key], r)
	c.mu.Unlock()
	cancelledAt := context.AfterFunc(ctx, func() {
		why, _ := errors.AsType[*perdure.CancelledError](context.Cause(ctx))
		c.mu.Lock()
		defer c.mu.Unlock()
		r.cancelledAt, r.lost = time.Now(), why != nil && (why.Reason == perdure.ReasonLockLost ||
			why.Reason == perdure.ReasonShutdown)
	})
	defer func() {
		cancelledAt()
		c.mu.Lock()
		r.ended = true
		c.mu.Unlock()
	}()
	if perdure.ActivityInfoFrom(ctx).Attempt <= s.Fails {
		return "", errors.New("not yet")
	}
	select {
	case <-time.After(s.Takes):
		return key, nil
	case <-ctx.Done():
		if s.CleanupTime < 0 {
			time.Sleep(30 * time.Second)
			return key, nil
		}
		time.Sleep(s.CleanupTime)
		return "", context.Cause(ctx)
	}
}

// undo records an undo, and checks that no code of its call still runs.
func (c *counter) undo(u undoInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undone[u.Key]++
	c.ends[u.Ended]++
	ran := false
	for key, runs := range c.runs {
		if key != u.Key && !strings.HasPrefix(key, u.Key+"/") {
			continue
		}
		for _, r := range runs {
			ran = true
			if !r.over() {
				name, _ := simhub.Process(r.ctx)
				c.errs = append(c.errs, fmt.Errorf("%s is undone (%s) while %s runs in %s, cancelled at %v",
					u.Key, u.Ended, key, name, r.cancelledAt))
			}
		}
	}
	if ran && u.Ended == string(perdure.OutcomeNeverStarted) {
		c.errs = append(c.errs, fmt.Errorf("%s ran although its outcome is never started", u.Key))
	}
}

func (c *counter) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "make", func(ctx context.Context, in struct {
		Key  string
		Step step
	},
	) (string, error) {
		return c.make(ctx, in.Key, in.Step)
	})
	perdure.AddActivity(r, "undo", func(ctx context.Context, u undoInput) (string, error) {
		if _, died := simhub.Process(ctx); !died {
			c.undo(u)
		}
		return u.Key, nil
	})
	perdure.AddOrchestration(r, "purchase", func(ctx *perdure.OrchestrationContext, p purchase) (_ string, err error) {
		scope, cancel := perdure.WithCancel(ctx)
		if p.Within > 0 {
			scope, cancel = perdure.WithTimeout(ctx, p.Within)
		}
		defer cancel()
		for _, s := range p.Steps {
			key := p.Key + "/" + s.What
			f := s.call(scope, key)
			defer perdure.Compensate(scope, &err, func(ctx *perdure.OrchestrationContext) error {
				u := undoInput{Key: key}
				if f.IsDone() { // always true: Compensate has waited
					_, why := f.Await(ctx)
					if c, ok := errors.AsType[*perdure.CancelledError](why); ok {
						u.Ended = string(c.CancelOutcome)
					}
				}
				_, err := perdure.CallActivityByName[string](ctx, "undo", u).Await(ctx)
				return err
			})
			if p.FailsAfter > 0 {
				first, err := perdure.WhenAny(scope, f, perdure.CreateTimer(ctx, p.FailsAfter))
				if err != nil || first == 1 {
					return "", errors.Join(err, errLate)
				}
			}
			if _, err = f.Await(scope); err != nil {
				return "", err
			}
		}
		return p.Key, nil
	})
	return r
}

// call makes the call with WaitForCancellation.
func (s step) call(ctx *perdure.OrchestrationContext, key string) *perdure.Future[string] {
	if s.Child {
		s.Child = false
		return perdure.CallSubOrchestrationByName[string](ctx, "purchase", purchase{Key: key, Steps: []step{s}},
			perdure.WaitForCancellation())
	}
	in := struct {
		Key  string
		Step step
	}{key, s}
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 3 * time.Second, MaxAttempts: 4})
	return perdure.CallActivityByName[string](ctx, "make", in, retry, perdure.WaitForCancellation())
}

// newPurchase returns a random order.
func newPurchase(rng *rand.Rand, id string) purchase {
	p := purchase{Key: id}
	cleanups := []time.Duration{0, 0, time.Second, 4 * time.Second, 9 * time.Second, -1}
	for _, what := range []string{"reserve", "charge", "ship"} {
		s := step{
			What: what, Takes: time.Duration(rng.IntN(8000)) * time.Millisecond,
			CleanupTime: cleanups[rng.IntN(len(cleanups))],
		}
		if rng.IntN(6) == 0 {
			s.Fails = 1 + rng.IntN(2)
		}
		s.Child = rng.IntN(5) == 0
		p.Steps = append(p.Steps, s)
	}
	moment := 500*time.Millisecond + time.Duration(rng.IntN(18_000))*time.Millisecond
	switch rng.IntN(6) {
	case 0:
		p.Within = moment
	case 1:
		p.FailsAfter = moment / 3
	default:
		p.At = moment
	}
	return p
}

// ordersPerSeed is the number of concurrent orders in one hub.
const ordersPerSeed = 40

// simulateOrders runs the orders of a seed, and returns the record of the witness.
func simulateOrders(t *testing.T, seed uint64) *counter {
	t.Helper()
	c := &counter{runs: map[string][]*running{}, undone: map[string]int{}, ends: map[string]int{}}
	s := faultSchedule(seed * uint64(len(simulated())))
	s.FaultDuration = time.Minute
	o := simhub.Options{
		Registry: c.registry(), Environments: 2, Schedule: s, MaxAttempts: noCrashLimit, EndOnRedelivery: true,
		WorkVisibility: time.Minute,
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: 0.05, Reorder: true})
		var all []provider.Instance
		for i := range ordersPerSeed {
			p := newPurchase(rng, fmt.Sprintf("o%d", i))
			in := h.startAs(p.Key, "purchase", p)
			all = append(all, in)
			if p.At > 0 {
				h.Scheduler.Go(ctx, "client of "+p.Key, func(ctx context.Context) {
					time.Sleep(p.At)
					_ = h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
						Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
						RequestedBy: history.RequestedByClient,
					})
				})
			}
		}
		err := h.Scheduler.Run(ctx, 24*time.Hour)
		if err == nil {
			err = errors.Join(errors.Join(c.errs...), h.CheckIdle(ctx), h.checkUndone(c, all))
		}
		time.Sleep(time.Minute) // abandoned code returns
		if err != nil {
			t.Errorf("-seed=%d: %v\n%s", seed, err, strings.Join(h.Scheduler.Tail(20), "\n"))
		}
	})
	return c
}

// checkUndone checks that all calls of an incomplete order are undone, and that no call of a completed order is undone.
func (h *hub) checkUndone(c *counter, all []provider.Instance) (err error) {
	for _, in := range all {
		now := h.read(in)
		undone := 0
		for key, n := range c.undone {
			if strings.HasPrefix(key, in.InstanceID+"/") && n > 0 {
				undone++
			}
		}
		if completed := now.Status == provider.StatusCompleted; completed && undone > 0 ||
			!completed && undone == 0 && h.called(in) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: got status %s and %d undos", in.InstanceID, now.Status, undone))
		}
	}
	return err
}

// called counts the calls of an order.
func (h *hub) called(in provider.Instance) (n int) {
	for _, e := range h.events(in) {
		if e.Kind == history.ActivityScheduled && e.Name == "make" || e.Kind == history.SubOrchestrationScheduled {
			n++
		}
	}
	return n
}

// TestUndo_tenThousandSimulatedOrders_startsAfterTheActivityEnds runs up to 10,000 orders with faults that a seed
// selects.
func TestUndo_tenThousandSimulatedOrders_startsAfterTheActivityEnds(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	seeds := uint64(max(1, min(manyOr(160), 10_000)/ordersPerSeed))
	if *oneSeed >= 0 {
		simulateOrders(t, uint64(*oneSeed))
		return
	}
	ends, undone := map[string]int{}, 0
	for seed := *firstSeed; seed < *firstSeed+seeds && !t.Failed(); seed++ {
		c := simulateOrders(t, seed)
		for end, n := range c.ends {
			ends[end] += n
		}
		undone += len(c.undone)
	}
	for _, end := range []perdure.CancelOutcome{
		perdure.OutcomeReturned, perdure.OutcomeAbandoned,
		perdure.OutcomeNeverStarted, perdure.OutcomeEnded,
	} {
		if seeds > 10 && ends[string(end)] == 0 {
			t.Errorf("got no call with outcome %s", end)
		}
	}
	t.Logf("%d orders, %d calls undone, by outcome: %v",
		seeds*ordersPerSeed, undone, slices.Sorted(func(yield func(string) bool) {
			for end, n := range ends {
				if !yield(fmt.Sprintf("%s %d", end, n)) {
					return
				}
			}
		}))
}
