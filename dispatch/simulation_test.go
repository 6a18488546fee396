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
	oneSeed      = flag.Int64("seed", -1, "TestSimulation…: run this seed only, and print its trace")
	schedules    = flag.Uint64("schedules", 2000, "TestSimulation: number of seeds")
	problemSeeds = flag.Uint64("problems", 8, "TestSimulationOfProblems: number of seeds of each problem")
	callSeeds    = flag.Uint64("calls", 96, "TestSimulationOfCalls: number of seeds")
	twice        = flag.Uint64("twice", 1,
		"TestSimulationOrder: number of seeds of each scenario, intervention and problem")
	firstSeed = flag.Uint64("from", 0, "TestSimulation…: first seed")
)

// TestMain reduces the number of seeds of a short run, unless flags set it. It discards logs of the default logger
// unless -v is set, because the logs of a thousand passing tests would hide a failed test.
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
		if !given["calls"] {
			*callSeeds = 16
		}
		if !given["problems"] {
			*problemSeeds = 1
		}
	}
	os.Exit(m.Run())
}

// TestSimulation runs all scenarios in an order and with faults that a seed selects. Every instance has the same end as
// without faults, and clients receive correct results. To repeat a seed: go test ./dispatch -run TestSimulation
// -seed=N.
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

// simulated returns the scenarios, followed by the interventions.
func simulated() []intervention {
	var all []intervention
	for _, s := range scenarios() {
		var act func(*simClient, context.Context)
		switch {
		case s.name == "updates":
			act = (*simClient).update
		case s.meanwhile != nil:
			act = (*simClient).pauseAndResume
		}
		check := func(m *simClient, ctx context.Context) error { return m.h.endedAs(ctx, m.first.InstanceID, s) }
		if s.name == "hands-over" {
			act = func(m *simClient, ctx context.Context) { m.hold(ctx, s.input == true) }
			check = func(m *simClient, ctx context.Context) error { return m.checkCompletion(ctx, s) }
		}
		all = append(all, intervention{s.name, s.name, s.input, act, check})
	}
	return append(all, interventions()...)
}

// spinLimit is the longest real time of a seed on a busy machine.
const spinLimit = 10 * time.Minute

// turnOf returns the number of a seed within its scenario. Further choices of the seed depend on it.
func turnOf(seed uint64) uint64 { return seed / uint64(len(simulated())) }

// faultSchedules is the number of fault schedules.
const faultSchedules = 4

// faultSchedule returns the fault schedule of a seed. A quarter of all seeds have no faults, so that they test only the
// order. In another quarter, many calls fail and no process crashes.
func faultSchedule(seed uint64) *simhub.Schedule {
	s := &simhub.Schedule{Seed: seed}
	switch turnOf(seed) % faultSchedules {
	case 1:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.005, 0.005, 0.005, 0.01
	case 2:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.04, 0.02, 0.02, 0.04
	case 3:
		s.Fail, s.Lose, s.Repeat = 0.12, 0.06, 0.02
	}
	return s
}

// crashLimitOf returns Options.MaxCrashes of a seed. Half of the seeds have the default or a low limit. Their functions
// end in time, because a crash marker cannot distinguish a frozen function from a crashed one. In the other half,
// nothing becomes poison.
func crashLimitOf(seed uint64) (limit int, hasLimit bool) {
	limits := []int{noCrashLimit, 1, noCrashLimit, 0}
	limit = limits[turnOf(seed)/faultSchedules%uint64(len(limits))]
	return limit, limit != noCrashLimit
}

// noCrashLimit is an Options.MaxCrashes that no message reaches.
const noCrashLimit = 1000

// scenarioPoison has poison that every seed must detect.
const scenarioPoison = "poison"

func simulate(t *testing.T, seed uint64) (sim *simhub.Scheduler) {
	t.Helper()
	s := simulated()[seed%uint64(len(simulated()))]
	w := newMonitor()
	o := simhub.Options{
		Registry: interventionRegistry(w), Environments: 3, Schedule: faultSchedule(seed), Intercept: w.intercept,
		Begins: w.deliveries.begins, BeginsInline: w.inline.begins,
	}
	if turnOf(seed)%2 == 1 {
		o.Rollup = 1 // every cold read
	}
	if s.name == scenarioQueries && turnOf(seed)%faultSchedules == 0 {
		o.Schedule.FaultSteps = -1 // time passes only when no goroutine runs
	}
	if o.MaxAttempts, o.EndOnRedelivery = crashLimitOf(seed); s.name == scenarioPoison {
		o.MaxAttempts, o.EndOnRedelivery = o.MaxAttempts%noCrashLimit, true
	}
	w.limited(o.MaxAttempts)
	spins := time.AfterFunc(spinLimit, func() { // outside of the bubble, in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine runs without blocking\n%s", s.name, seed,
			strings.Join(sim.Tail(60), "\n")))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		sim = h.Scheduler
		w.on(h)
		m := &simClient{
			h: h, w: w, c: client.New(h.Provider), first: h.start(s.orchestration, s.input),
			faultless: turnOf(seed)%faultSchedules == 0, rng: rand.New(rand.NewPCG(seed, 3)),
		}
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Reorder: true})
		if s.act != nil {
			h.Scheduler.Go(ctx, "client", func(ctx context.Context) { s.act(m, ctx) })
		}
		err := h.Scheduler.Run(ctx, 24*time.Hour)
		if err == nil {
			err = m.verify(ctx, s)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", s.name, seed, err, strings.Join(h.Scheduler.Tail(40), "\n"))
		}
	})
	return sim
}

// verify runs the checks that apply to all faults. It also runs the checks of the scenario, unless a record became
// poison with proof.
func (m *simClient) verify(ctx context.Context, s intervention) error {
	err := m.w.check(ctx)
	switch {
	case err != nil || m.w.verdicts > 0 && s.name != scenarioPoison:
		return err
	case s.name == scenarioPoison:
		return s.check(m, ctx)
	default:
		return errors.Join(errors.Join(m.errs...), s.check(m, ctx), m.h.CheckIdle(ctx))
	}
}

// endedAs returns an error if a scenario's instance has not ended as expected.
func (h *hub) endedAs(ctx context.Context, instanceID string, s scenario) error {
	h.Cloud.Table.Lag(0) // a list is eventually consistent
	if page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Limit: 1000}); err != nil ||
		len(page.Instances) != s.instances {
		return errors.Join(err, fmt.Errorf("got %d instances, want %d", len(page.Instances), s.instances))
	}
	in, err := h.Provider.ReadInstance(ctx, instanceID)
	if err != nil {
		return err
	}
	end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	switch {
	case err != nil:
		return fmt.Errorf("no end: %w", err)
	case end.Kind != history.OrchestrationCompleted || s.want != "" && string(end.Output) != s.want:
		return fmt.Errorf("ended with %s, output %s, want %s", end.String(), end.Output, s.want)
	case s.name == "statuses" && string(in.CustomStatus) != s.want, s.name == "inline-medley" &&
		string(in.CustomStatus) != `"done"`:
		return fmt.Errorf("got custom status %s", in.CustomStatus)
	}
	return nil
}
