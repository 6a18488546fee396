package simhub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// everything runs activities, children and timers concurrently. One activity fails at first.
func everything(ctx *perdure.OrchestrationContext, n int) (int, error) {
	var all []*perdure.Future[int]
	for i := range n {
		all = append(all, perdure.CallActivity(ctx, inc, i), perdure.CallSubOrchestrationByName[int](ctx, "chain", i))
	}
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})
	all = append(all, perdure.CallActivityByName[int](ctx, "flaky", n, retry))
	waits := append(perdure.Awaitables(all), perdure.CreateTimer(ctx, time.Minute), perdure.CreateTimer(ctx, time.Hour))
	if err := perdure.WhenAll(ctx, waits...); err != nil {
		return 0, err
	}
	sum := 0
	for _, f := range all {
		v, _ := f.Await(ctx)
		sum += v
	}
	return sum, nil
}

// scheduled runs everything on a hub with a schedule while a client raises events, and returns the trace.
func scheduled(t *testing.T, s simhub.Schedule) (trace []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "inc", inc)
		perdure.AddActivity(r, "flaky", func(ctx context.Context, n int) (int, error) {
			simhub.Step(ctx)
			if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
				return 0, errors.New("at first")
			}
			return n, nil
		})
		perdure.AddOrchestration(r, "chain", chain)
		perdure.AddOrchestration(r, "everything", everything)
		h, err := simhub.New(simhub.Options{Registry: r, Environments: 2, Schedule: &s})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		in, err := h.Provider.StartOrchestration(t.Context(), provider.Start{
			InstanceID: "i-1", Name: "everything", Input: history.Payload("3"), StartID: "start",
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Scheduler.Go(t.Context(), "client", func(ctx context.Context) {
			for _, id := range []string{"a", "b"} {
				m := provider.Message{
					Kind: provider.MessageEventRaised, InstanceID: "i-1", Name: "unheeded", EventID: id,
				}
				if err := h.Provider.EnqueueForOrchestrator(ctx, m); err != nil {
					t.Error(err)
				}
			}
		})
		err = errors.Join(h.Scheduler.Run(t.Context(), 24*time.Hour), h.CheckIdle(t.Context()))
		end, endErr := h.Provider.ReadTerminalEvent(t.Context(), in.ExecutionID)
		if err = errors.Join(err, endErr); err != nil || string(end.Output) != "12" {
			t.Errorf("seed %d: ended with %s, %v\n%s", s.Seed, end.String(), err,
				strings.Join(h.Scheduler.Tail(30), "\n"))
		}
		trace = h.Scheduler.Trace()
	})
	return trace
}

// faultyOf returns a schedule with all faults.
func faultyOf(seed uint64) simhub.Schedule {
	return simhub.Schedule{Seed: seed, Crash: 0.01, Fail: 0.01, Lose: 0.01, Repeat: 0.02}
}

func TestSchedule_sameSeed_givesTheSameOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		for name, s := range map[string]simhub.Schedule{
			"calm": {Seed: seed}, "stormy": faultyOf(seed), "twins": {Seed: seed, Repeat: 0.2},
		} {
			one, two := scheduled(t, s), scheduled(t, s)
			if slices.Equal(one, two) {
				continue
			}
			for i := range min(len(one), len(two)) {
				if one[i] != two[i] {
					t.Errorf("%s, seed %d: two runs differ at\n%s\n%s\n%s", name, seed,
						strings.Join(one[max(0, i-12):i], "\n"), one[i], two[i])
					break
				}
			}
		}
	}
}

func TestSchedule_differentSeeds_giveDifferentOrders(t *testing.T) {
	t.Parallel()
	const seeds = 200
	distinct, decisions := map[string]bool{}, 0
	for seed := range uint64(seeds) {
		trace := scheduled(t, simhub.Schedule{Seed: seed})
		distinct[strings.Join(trace, "\n")] = true
		decisions += len(trace)
	}
	t.Logf("%d orders of %d decisions each, on average, from %d seeds", len(distinct), decisions/seeds, seeds)
	if len(distinct) < seeds*95/100 {
		t.Errorf("%d seeds gave %d orders", seeds, len(distinct))
	}
}

// Each fault occurs with a stormy schedule, and none with a calm one.
func TestSchedule_allowedFaults_occurAndNoOthers(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]simhub.Schedule{
		"CRASHES": {Crash: 0.02}, "FAILS": {Fail: 0.02}, "<-: FAILS": {Lose: 0.02}, "<-: REPEATS": {Repeat: 0.02},
		"none": {},
	} {
		trace := ""
		for s.Seed = range 5 {
			trace += strings.Join(scheduled(t, s), "\n") + "\n"
		}
		if name != "none" && !strings.Contains(trace, name) {
			t.Errorf("no fault of kind %q", name)
		}
		for _, other := range []string{"CRASHES", "FAILS", "REPEATS"} {
			if !strings.HasSuffix(name, other) && strings.Contains(trace, ": "+other) {
				t.Errorf("%s: unexpected fault of kind %q", name, other)
			}
		}
	}
}
