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

// 1. A session defers a status to a later turn, and its commit takes very long.
// 2. Another invocation continues the instance. It does not have the deferred status.
// 3. The status is still written.
func TestR20_deferredStatusAndSlowCommit_isWritten(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		ctx.SetCustomStatus("busy")
		var all []*perdure.Future[int]
		for i := range n { // too many for a commit together with the next turn
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
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
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
			t.Errorf("the instance is %s with custom status %s after %d slow commits",
				now.Status, now.CustomStatus, slow)
		}
		w.wantRuns(t, 1, 0)
	})
}

// The latencies of an instance that starts and ends in one commit include the time of its inline activities.
func TestMetrics_twoTurnsInACommit_includeInlineTime(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	naps := func(ctx context.Context, d time.Duration) (int, error) { return 1, sleepFor(ctx, d) }
	perdure.AddActivity(r, "naps", naps, perdure.Inline())
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, queued bool) (v int, err error) {
		if v, err = perdure.CallActivityByName[int](ctx, "naps", 1500*time.Millisecond).Await(ctx); err != nil ||
			!queued {
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
				t.Errorf("got %s %v, want one sample of at least 1.5s", name, ms)
			}
		}
		if ms := seen["ActivityEndToEndLatency"]; queued && (len(ms) != 2 || ms[1] > 1000) {
			t.Errorf("got ActivityEndToEndLatency %v, want the queued activity without the inline activity before it",
				ms)
		}
	}
}

// contextCodec is a codec that fails if its context has ended.
type contextCodec struct{ turning }

func (h *contextCodec) Decode(ctx context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.turning.Decode(ctx, p, data)
}

// The code of the next turn decodes payloads with the context of the current turn. The context of the previous turn,
// which an interceptor created, has ended.
func TestR20_nextTurn_usesTheContextOfTheCurrentTurn(t *testing.T) {
	t.Parallel()
	limits := perdure.Interceptor{Turn: func(
		ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult,
	) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		next(ctx)
	}}
	w := &inlineWork{}
	o := simhub.Options{
		Interceptors: []perdure.Interceptor{limits}, Codecs: []perdure.Codec{&contextCodec{turning{id: "turned"}}},
	}
	withInlineWork(t, w, o, nil, func(_ context.Context, h *hub) {
		if in := h.start("works", 4); len(h.turn(0)) > 0 || h.read(in).Status != provider.StatusCompleted {
			t.Errorf("the instance is %s, want completed", h.read(in).Status)
		}
		w.wantRuns(t, 4, 0)
	})
}
