package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/tests/scenarios"
)

// tick is long, because virtual time is free and no crash may delay a step by enough to change the winner of a race.
const tick = time.Minute

// Each scenario runs in virtual time, with cached executions and with a full replay in each turn.
func TestEngine_scenariosInVirtualTime_succeed(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios.All(tick) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for name, opts := range map[string][]perduretest.Option{"warm": {perduretest.WithCache()}, "cold": nil} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					inVirtualTime(t, named(t, s.Name), opts...)
				})
			}
		})
	}
}

// named returns a new copy of a scenario, because some scenarios have counters.
func named(t *testing.T, name string) scenarios.Scenario {
	t.Helper()
	for _, s := range scenarios.All(tick) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("unknown scenario %q", name)
	return scenarios.Scenario{}
}

func inVirtualTime(t *testing.T, s scenarios.Scenario, opts ...perduretest.Option) {
	t.Helper()
	r := perdure.NewRegistry()
	scenarios.Register(r, s)
	if s.Large {
		opts = append(slices.Clip(opts), perduretest.WithLargePayloads())
	}
	env := perduretest.New(t, r, opts...)
	ctx, c := t.Context(), env.Client()
	scenarios.Hold(c, s)
	id, err := c.Start(ctx, s.Name, s.Input, append(s.Start, client.WithInstanceID(instanceID))...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Drive != nil {
		if err := s.Drive(ctx, scenarios.World{Client: c, Tick: tick, Pass: env.Advance}, id); err != nil {
			t.Fatal(err)
		}
	}
	status, err := c.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour) // unwanted messages would have arrived by then
	if err := s.Check(ctx, c, status); err != nil {
		t.Error(err)
	}
	if s.CheckWithoutFaults == nil {
		return
	}
	if err := s.CheckWithoutFaults(ctx, c, status); err != nil {
		t.Error(err)
	}
}
