package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The commit of a turn that has left its status to a later one takes so long that another invocation goes on: that one does not know of it. A status
// that nothing changes again would be behind for ever.
func TestR20AStatusThatWasLeftIsShownBeforeAnotherInvocationGoesOn(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		ctx.SetCustomStatus("busy")
		var all []*perdure.Future[int]
		for i := range n { // more than a turn has beside which the code goes on before its commit
			all = append(all, perdure.CallActivity(ctx, inc, i))
		}
		if _, err := callWork(ctx, 1).Await(ctx); err != nil {
			return 0, err
		}
		if _, err := sumOf(ctx, all); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "end").Await(ctx)
	}
	inWorkshop(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 600)
		h.serveFor(time.Minute)
		slow := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000002") {
				slow++
				time.Sleep(11 * time.Second)
			}
			return next()
		})
		h.raiseGo(in)
		h.serveFor(time.Hour)
		if now := h.read(in); string(now.CustomStatus) != `"busy"` || slow != 1 {
			t.Errorf("it is %s, and says %s (%d)", now.Status, now.CustomStatus, slow)
		}
		w.wantRuns(t, 1, 0)
	})
}

// The latencies of an instance that ends in the commit in which it began include what its steps took.
func TestMetricsOfTwoTurnsInACommit(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "naps", func(ctx context.Context, d time.Duration) (int, error) { return 1, sleepFor(ctx, d) }, perdure.Inline())
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, queued bool) (v int, err error) {
		if v, err = perdure.CallActivityByName[int](ctx, "naps", 1500*time.Millisecond).Await(ctx); err != nil || !queued {
			return v, err
		}
		return perdure.CallActivity(ctx, inc, v).Await(ctx)
	})
	for _, queued := range []bool{false, true} {
		lines, _ := measured(t, r, dispatch.MetricsByHub, func(h *hub) { h.finish(h.start("works", queued)) })
		seen := map[string][]float64{}
		for _, l := range lines {
			for name, v := range l.values {
				var ms []float64
				if json.Unmarshal(v, &ms) == nil {
					seen[name] = append(seen[name], ms...)
				}
			}
		}
		for _, name := range []string{"OrchestrationExecutionLatency", "OrchestrationEndToEndLatency"} {
			if ms := seen[name]; len(ms) != 1 || ms[0] < 1500 {
				t.Errorf("%s: %v", name, ms)
			}
		}
		if ms := seen["ActivityEndToEndLatency"]; queued && (len(ms) != 2 || ms[1] > 1000) {
			t.Errorf("of what was sent with the outcome of a step: %v", ms)
		}
	}
}

// heeding is a codec that makes calls, which end with their context.
type heeding struct{ turning }

func (h *heeding) Decode(ctx context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.turning.Decode(ctx, p, data)
}

// The code that goes ahead takes what it is given within the turn under way: the context of the one before, which an interceptor has made, is over.
func TestR20TheCodeGoesAheadWithinTheTurnUnderWay(t *testing.T) {
	t.Parallel()
	limits := perdure.Interceptor{Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		next(ctx)
	}}
	w := &workshop{}
	o := simhub.Options{Interceptors: []perdure.Interceptor{limits}, Codecs: []perdure.Codec{&heeding{turning{id: "turned"}}}}
	inWorkshop(t, w, o, nil, func(_ context.Context, h *hub) {
		if in := h.start("works", 4); len(h.turn(0)) > 0 || h.read(in).Status != provider.StatusCompleted {
			t.Errorf("it is %s", h.read(in).Status)
		}
		w.wantRuns(t, 4, 0)
	})
}
