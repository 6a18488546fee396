package dispatch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

var (
	oneSeed   = flag.Int64("seed", -1, "of TestSimulation: replay this seed alone, and print what happened in order")
	schedules = flag.Uint64("schedules", 2400, "of TestSimulation: how many seeds")
)

// Everything that happens is in an order that a seed decides on, with faults at places that it decides on: every instance ends as if
// nothing had happened. A seed that fails does so again, by itself: go test ./dispatch -run TestSimulation -seed=N.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		simulate(t, uint64(*oneSeed), true)
		return
	}
	n := uint64(len(scenarios()))
	for first, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(first); seed < *schedules && !t.Failed(); seed += n {
				simulate(t, seed, false)
			}
		})
	}
}

// weather is what a seed does beside the order: a third of all seeds do no harm, so that order alone is tried too.
func weather(seed uint64) *simhub.Schedule {
	s := &simhub.Schedule{Seed: seed}
	switch seed / uint64(len(scenarios())) % 3 {
	case 1:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.005, 0.005, 0.005, 0.01
	case 2:
		s.Crash, s.Fail, s.Lose, s.Repeat = 0.04, 0.02, 0.02, 0.04
	}
	return s
}

func simulate(t *testing.T, seed uint64, trace bool) {
	t.Helper()
	s := scenarios()[seed%uint64(len(scenarios()))]
	o := simhub.Options{Environments: 3, Schedule: weather(seed), MaxAttempts: 1000} // in such weather anything would pass for poison
	var sim *simhub.Scheduler
	spins := time.AfterFunc(20*time.Second, func() { // outside of the bubble: in real time
		panic(fmt.Sprintf("%s, -seed=%d: a goroutine neither blocks nor ends\n%s", s.name, seed, strings.Join(sim.Tail(60), "\n")))
	})
	defer spins.Stop()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		sim = h.Scheduler
		in := h.start(s.name, s.input)
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Reorder: true})
		err := h.Scheduler.Run(ctx, 24*time.Hour)
		if err == nil {
			err = errors.Join(h.endedAs(ctx, in.InstanceID, s), h.CheckRest(ctx))
		}
		if page, _ := h.Provider.ListInstances(ctx, provider.Query{Limit: 1000}); err == nil && len(page.Instances) != s.instances {
			err = fmt.Errorf("%d instances, want %d", len(page.Instances), s.instances)
		}
		if err != nil {
			t.Errorf("%s, -seed=%d: %v\n%s", s.name, seed, err, strings.Join(h.Scheduler.Tail(40), "\n"))
		}
		if trace {
			t.Log("\n" + strings.Join(h.Scheduler.Trace(), "\n"))
		}
	})
}

// endedAs says what is wrong with the end of a scenario's instance.
func (h *hub) endedAs(ctx context.Context, instanceID string, s scenario) error {
	in, err := h.Provider.ReadInstance(ctx, instanceID)
	if err != nil {
		return err
	}
	end, err := h.Provider.ReadEnd(ctx, in.ExecutionID)
	switch {
	case err != nil:
		return fmt.Errorf("it has not ended: %w", err)
	case end.Kind != history.OrchestrationCompleted || s.want != "" && string(end.Output) != s.want:
		return fmt.Errorf("it ended with %s %s, want %s", end.String(), end.Output, s.want)
	case s.name == "statuses" && string(in.CustomStatus) != s.want:
		return fmt.Errorf("its custom status is %s", in.CustomStatus)
	}
	return nil
}
