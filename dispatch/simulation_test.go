package dispatch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch/internal/turns"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

var (
	oneSeed   = flag.Int64("seed", -1, "of TestSimulation and TestSimulationInTrouble: replay this seed alone, and print what happened in order")
	schedules = flag.Uint64("schedules", 2000, "of TestSimulation: how many seeds")
	troubled  = flag.Uint64("troubled", 8, "of TestSimulationInTrouble: how many seeds of each trouble")
	traded    = flag.Uint64("traded", 96, "of TestSimulationOfCalls: how many seeds")
	twice     = flag.Uint64("twice", 1, "of TestOneSeedOfTheSimulationIsOneOrder: how many seeds of each scenario, intervention and trouble")
	firstSeed = flag.Uint64("from", 0, "of TestSimulation and TestSimulationInTrouble: the seeds from this one on")
)

// TestMain lets a short run try a few seeds, where no flag says how many. What code that is given no logger logs is shown where it is asked for:
// among what a thousand tests that pass log, the one that fails is not found.
func TestMain(m *testing.M) {
	flag.Parse()
	turns.InvalidTransition = func(err error) { panic(err) }
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	if testing.Short() {
		given := map[string]bool{}
		flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["schedules"] {
			*schedules = uint64(2 * len(simulated()))
		}
		if !given["traded"] {
			*traded = 16
		}
		if !given["troubled"] {
			*troubled = 1
		}
	}
	os.Exit(m.Run())
}

// Everything that happens is in an order that a seed decides on, with faults at places that it decides on: every instance ends as if
// nothing had happened, and what clients meddle with as they were told. A seed that fails does so again, by itself:
// go test ./dispatch -run TestSimulation -seed=N.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Log("\n" + strings.Join(simulate(t, uint64(*oneSeed)).Trace(), "\n"))
		return
	}
	n := uint64(len(simulated()))
	for first, s := range simulated() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			from := (*firstSeed + n - 1) / n * n
			for seed := from + uint64(first); seed < from+*schedules && !t.Failed(); seed += n {
				simulate(t, seed)
			}
		})
	}
}

// simulated are the scenarios and, at the end, the interventions.
func simulated() []intervention {
	var all []intervention
	for _, s := range scenarios() {
		var act func(*meddler, context.Context)
		switch {
		case s.name == "updates":
			act = (*meddler).update
		case s.meanwhile != nil:
			act = (*meddler).pauseAndResume
		}
		check := func(m *meddler, ctx context.Context) error { return m.h.endedAs(ctx, m.first.InstanceID, s) }
		if s.name == "hands-over" {
			act = func(m *meddler, ctx context.Context) { m.hold(ctx, s.input == true) }
			check = func(m *meddler, ctx context.Context) error { return m.checkHeld(ctx, s) }
		}
		all = append(all, intervention{s.name, s.name, s.input, act, check})
	}
	return append(all, interventions()...)
}

// spinLimit is how long a seed may take in real time, on a machine that has much else to do.
const spinLimit = 10 * time.Minute

// turnOf is the how manieth seed of its scenario one is: what else it decides on goes by that.
func turnOf(seed uint64) uint64 { return seed / uint64(len(simulated())) }

// weathers are how many there are.
const weathers = 4

// weather is what a seed does beside the order. A quarter of all seeds do no harm, so that order alone is tried too; in another one
// much fails, and nobody dies.
func weather(seed uint64) *simhub.Schedule {
	s := &simhub.Schedule{Seed: seed}
	switch turnOf(seed) % weathers {
	case 1:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.005, 0.005, 0.005, 0.01
	case 2:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.04, 0.02, 0.02, 0.04
	case 3:
		s.Fail, s.Lose, s.Repeat = 0.12, 0.06, 0.02
	}
	return s
}

// watchedFrom is Options.MaxCrashes of a seed. Every other one has the default, or so few that what is delivered again leaves its
// mark; functions end in time there, since a mark cannot tell one that is frozen from one that is dead. With the rest nothing is poison.
func watchedFrom(seed uint64) (limit int, mortal bool) {
	limits := []int{unwatched, 1, unwatched, 0}
	limit = limits[turnOf(seed)/weathers%uint64(len(limits))]
	return limit, limit != unwatched
}

// unwatched is an Options.MaxCrashes that no message comes to.
const unwatched = 1000

// scenarioPoison has poison of its own in it, which is found with every seed.
const scenarioPoison = "poison"

func simulate(t *testing.T, seed uint64) (sim *simhub.Scheduler) {
	t.Helper()
	s := simulated()[seed%uint64(len(simulated()))]
	w := newWitness()
	o := simhub.Options{Registry: meddled(w), Environments: 3, Schedule: weather(seed), Intercept: w.intercept, Begins: w.deliveries.begins, BeginsInline: w.inline.begins}
	if turnOf(seed)%2 == 1 {
		o.Rollup = 1 // all that is read cold
	}
	if s.name == scenarioAsked && turnOf(seed)%weathers == 0 {
		o.Schedule.Storm = -1 // time passes only where nothing goes on
	}
	if o.MaxAttempts, o.Mortal = watchedFrom(seed); s.name == scenarioPoison {
		o.MaxAttempts, o.Mortal = o.MaxAttempts%unwatched, true
	}
	w.limited(o.MaxAttempts)
	spins := time.AfterFunc(spinLimit, func() { // outside of the bubble: in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine neither blocks nor ends\n%s", s.name, seed, strings.Join(sim.Tail(60), "\n")))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		sim = h.Scheduler
		w.on(h)
		m := &meddler{h: h, w: w, c: client.New(h.Provider), first: h.start(s.orchestration, s.input), calm: turnOf(seed)%weathers == 0, rng: rand.New(rand.NewPCG(seed, 3))}
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Reorder: true})
		if s.act != nil {
			h.Scheduler.Go(ctx, "client", func(ctx context.Context) { s.act(m, ctx) })
		}
		err := h.Scheduler.Run(ctx, 24*time.Hour)
		if err == nil {
			err = m.judge(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", s.name, seed, err, strings.Join(h.Scheduler.Tail(40), "\n"))
		}
	})
	return sim
}

// judge checks what holds in any weather, and that all is well besides: unless something was found to be poison, with proof, which is
// an end of its own.
func (m *meddler) judge(ctx context.Context, s intervention) error {
	err := m.w.check(ctx)
	switch {
	case err != nil || m.w.verdicts > 0 && s.name != scenarioPoison:
		return err
	case s.name == scenarioPoison:
		return s.check(m, ctx)
	default:
		return errors.Join(errors.Join(m.errs...), s.check(m, ctx), m.h.CheckRest(ctx))
	}
}

// endedAs says what is wrong with the end of a scenario's instance.
func (h *hub) endedAs(ctx context.Context, instanceID string, s scenario) error {
	h.Cloud.Table.Lag(0) // a list may be behind
	if page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Limit: 1000}); err != nil || len(page.Instances) != s.instances {
		return errors.Join(err, fmt.Errorf("%d instances, want %d", len(page.Instances), s.instances))
	}
	in, err := h.Provider.ReadInstance(ctx, instanceID)
	if err != nil {
		return err
	}
	end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	switch {
	case err != nil:
		return fmt.Errorf("it has not ended: %w", err)
	case end.Kind != history.OrchestrationCompleted || s.want != "" && string(end.Output) != s.want:
		return fmt.Errorf("it ended with %s %s, want %s", end.String(), end.Output, s.want)
	case s.name == "statuses" && string(in.CustomStatus) != s.want, s.name == "inline-medley" && string(in.CustomStatus) != `"done"`:
		return fmt.Errorf("its custom status is %s", in.CustomStatus)
	}
	return nil
}
