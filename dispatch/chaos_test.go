package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// For a minute, all faults occur at the same time. Processes crash at a tenth of their calls, calls take up to five
// seconds, and messages are redelivered after two seconds. Reads are stale, and work items arrive twice and out of
// order. Three environments hold warm instances. After the minute, no more faults occur. Every instance ends as without
// faults, unless one of its messages became poison.
func TestChaos_allFaultsForAMinute_instancesEnd(t *testing.T) {
	t.Parallel()
	for seed := range shortrun.Few[uint64](64, 320) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chaos(t, seed)
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	t.Helper()
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 7))
	float := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return rng.Float64()
	}
	var calmAt time.Time
	mayFail := func() bool { return time.Now().Before(calmAt) }
	crash := simhub.Crash(func(simaws.Call) (before, after bool) {
		if !mayFail() {
			return false, false
		}
		x := float()
		return x < 0.04, x > 0.93
	})
	pause := func() {
		if mayFail() && float() < 0.25 {
			time.Sleep(time.Duration(float() * 5 * float64(time.Second)))
		}
	}
	w := newMonitor()
	o := simhub.Options{Environments: 3, InboxVisibility: 2 * time.Second, WorkVisibility: 2 * time.Second}
	o.MaxAttempts, o.EndOnRedelivery = crashLimitOf(seed * faultSchedules)
	w.limited(o.MaxAttempts)
	o.Intercept = func(ctx context.Context, c simaws.Call, next func() error) error {
		pause()
		err := crash(ctx, c, func() error { return w.interceptPoison(ctx, c, next) })
		pause()
		return err
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		s := scenarios()[seed%uint64(len(scenarios()))]
		in := h.start(s.name, s.input)
		h.Cloud.Table.Lag(3)
		h.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: 0.2, Reorder: true})
		calmAt = time.Now().Add(time.Minute)
		go queryRepeatedly(ctx, h, calmAt)
		if s.meanwhile != nil {
			s.meanwhile(h, in)
		}
		h.serveFor(24 * time.Hour)
		if verdicts, err := w.found(); verdicts > 0 {
			if err != nil {
				t.Error(err)
			}
			return
		}
		end := h.finish(in)
		if end.Kind != history.OrchestrationCompleted || s.want != "" && string(end.Output) != s.want {
			t.Errorf("%s ended with %s %s", s.name, end.String(), end.Output)
		}
		h.checkIdle()
		h.wantInstances(s.instances)
		if i, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || i.Status != provider.StatusCompleted {
			t.Errorf("%s: got status %v, %v, want completed", s.name, i.Status, err)
		}
	})
}

// queryRepeatedly queries the instance repeatedly while its turns run in the same process. The code must match the
// history, and no query handler is set. It stops if poison has blocked the instance.
func queryRepeatedly(ctx context.Context, h *hub, until time.Time) {
	for time.Now().Before(until) {
		_, err := h.QueryInstance(ctx, provider.QueryRequest{InstanceID: "i-1", Name: "progress"})
		e, ok := errors.AsType[*provider.QueryError](err)
		if ok && e.Failure != nil && e.Failure.Type == history.TypePoison {
			return
		}
		if !ok || e.Code != provider.QueryHandlerNotFound && e.Code != provider.QueryNotStarted {
			h.t.Errorf("query during the faults: got error %v", err)
		}
		time.Sleep(3 * time.Second)
	}
}
