package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
)

// metricLine is a log line in embedded metric format.
type metricLine struct {
	Level string `json:"level"`
	AWS   struct {
		CloudWatchMetrics []struct {
			Namespace  string     `json:"Namespace"`
			Dimensions [][]string `json:"Dimensions"`
			Metrics    []struct {
				Name string `json:"Name"`
				Unit string `json:"Unit"`
			} `json:"Metrics"`
		} `json:"CloudWatchMetrics"`
	} `json:"_aws"`
	values map[string]json.RawMessage
}

// metricLines returns the metric lines of a log, except those that the metrics option does not control.
func metricLines(t *testing.T, log string) (all []metricLine) {
	t.Helper()
	for line := range strings.Lines(log) {
		var m metricLine
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal([]byte(line), &m.values)
		if string(m.values["msg"]) == `"metrics"` {
			all = append(all, m)
		}
	}
	return all
}

// sums returns the sum of each count, and the number of samples of each latency.
func sums(t *testing.T, lines []metricLine) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, l := range lines {
		for _, m := range l.AWS.CloudWatchMetrics[0].Metrics {
			var count int
			var samples []float64
			switch {
			case json.Unmarshal(l.values[m.Name], &count) == nil:
				all[m.Name] += count
			case json.Unmarshal(l.values[m.Name], &samples) == nil:
				all[m.Name] += len(samples)
			default:
				t.Errorf("metric %s is %s, want a number or samples", m.Name, l.values[m.Name])
			}
		}
	}
	return all
}

// measured runs f on a hub with metrics, and returns the metrics. The log level is warning, which includes them.
func measured(t *testing.T, r *perdure.Registry, m dispatch.Metrics, f func(h *hub)) (
	lines []metricLine, invocations int64,
) {
	t.Helper()
	var log bytes.Buffer
	o := simhub.Options{
		Registry: r, Metrics: m, BatchSize: 1, CancellationGracePeriod: time.Second,
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	inBubble(t, o, func(_ context.Context, h *hub) {
		f(h)
		invocations = h.Cloud.Counts()["Lambda.Invoke"]
	})
	return metricLines(t, log.String()), invocations
}

// An invocation logs one metric line with the hub as its dimension. The latencies match the run.
func TestMetrics_orchestration_hasOneLinePerInvocation(t *testing.T) {
	t.Parallel()
	lines, invocations := measured(t, nil, dispatch.MetricsByHub, func(h *hub) { h.finish(h.start("retries", 2)) })
	if n := int64(len(lines)); n == 0 || n > invocations {
		t.Errorf("got %d lines of %d invocations, want 1 to %d", n, invocations, invocations)
	}
	for _, l := range lines {
		d := l.AWS.CloudWatchMetrics[0]
		hub := string(l.values["hub"])
		if d.Namespace != "perdure" || len(d.Dimensions) != 1 || !slices.Equal(d.Dimensions[0], []string{"hub"}) ||
			hub != `"test"` || l.Level != "WARN" {
			t.Errorf("got metadata %+v of hub %s", l.AWS, hub)
		}
	}
	want := map[string]int{
		"ActivityScheduleToStartLatency": 2, "ActivityExecutionLatency": 2, "ActivitiesRetried": 1,
		"ActivityEndToEndLatency":             1,
		"OrchestrationScheduleToStartLatency": 1, "OrchestrationExecutionLatency": 1,
		"OrchestrationEndToEndLatency": 1, "OrchestrationsCompleted": 1,
		"TurnLatency": 2, "CacheHits": 2,
	}
	if diff := cmp.Diff(want, sums(t, lines)); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	for _, l := range lines {
		if v, there := l.values["ActivityEndToEndLatency"]; there { // the attempts are a minute apart
			var ms []float64
			if err := json.Unmarshal(v, &ms); err != nil || ms[0] < 60_000 || ms[0] > 70_000 {
				t.Errorf("got end-to-end latency %s, want 60s to 70s", v)
			}
		}
		if v, there := l.values["ActivityScheduleToStartLatency"]; there {
			var ms []float64
			if err := json.Unmarshal(v, &ms); err != nil || ms[0] > 1000 {
				t.Errorf("got schedule-to-start latency %s, want at most 1s", v)
			}
		}
	}
}

// Each call fails once, in one run each. The end of the instance is counted once, even if the last turn could not send
// all outputs at first.
func TestMetrics_endIsDispatchedTwice_isCountedOnce(t *testing.T) {
	t.Parallel()
	for failing, made := int64(1), true; made; failing++ {
		lines, _ := measured(t, nil, dispatch.MetricsByHub, func(h *hub) {
			var calls atomic.Int64
			h.start("chain", 1)
			h.interfere(failsOnce(&calls, failing))
			h.serveFor(time.Hour)
			h.interfere(nil)
			h.checkIdle()
			made = calls.Load() >= failing
		})
		if got := sums(t, lines); got["OrchestrationsCompleted"] != 1 || got["OrchestrationEndToEndLatency"] != 1 {
			t.Errorf("call %d failed: got metrics %v, want one end", failing, got)
		}
	}
}

// With MetricsByName, each name has its own line and dimension.
func TestMetrics_byName_haveADimensionPerName(t *testing.T) {
	t.Parallel()
	lines, _ := measured(t, nil, dispatch.MetricsByName, func(h *hub) { h.finish(h.start("chain", 1)) })
	seen := map[string]bool{}
	for _, l := range lines {
		d := l.AWS.CloudWatchMetrics[0].Dimensions[0]
		seen[d[1]+" "+string(l.values[d[1]])] = true
	}
	if len(seen) != 2 || !seen[`activity "inc"`] || !seen[`orchestration "chain"`] {
		t.Errorf("got dimensions %v, want the activity and the orchestration", seen)
	}
}

// With MetricsOff, no metrics are logged.
func TestMetrics_off_areNotLogged(t *testing.T) {
	t.Parallel()
	if lines, _ := measured(t, nil, dispatch.MetricsOff, func(h *hub) {
		h.finish(h.start("chain", 1))
	}); len(lines) > 0 {
		t.Errorf("got %d metric lines, want none", len(lines))
	}
	if _, err := dispatch.NewRenewer(nil, nil); err == nil {
		t.Error("NewRenewer accepted a nil provider")
	}
}

// The test changes every metric except the latencies above. A process stops while an activity ignores its context. At
// the next delivery, the activity is cancelled.
func TestMetrics_allEvents_moveEveryMetric(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "fails", func(context.Context, int) (int, error) { return 0, errors.New("no luck") })
	perdure.AddActivity(r, "observes-cancel", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	perdure.AddActivity(r, "ignores", func(context.Context, int) (int, error) {
		time.Sleep(time.Hour)
		return 0, nil
	})
	for _, name := range []string{"fails", "observes-cancel", "ignores"} {
		perdure.AddOrchestration(r, "calls "+name, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivityByName[int](ctx, name, 1).Await(ctx)
		})
	}
	lines, _ := measured(t, r, dispatch.MetricsByName, func(h *hub) {
		c := client.New(h.Provider, client.WithCaller("test"))
		for _, name := range []string{"fails", "observes-cancel", "ignores"} {
			if _, err := c.Start(h.t.Context(), "calls "+name, 1, client.WithInstanceID(name)); err != nil {
				t.Fatal(err)
			}
		}
		h.serveFor(time.Minute)
		if err := errors.Join(c.Cancel(h.t.Context(), "observes-cancel", ""),
			c.Terminate(h.t.Context(), "ignores", "")); err != nil {
			t.Fatal(err)
		}
		h.serveFor(2 * time.Hour)
		for range 2 {
			if _, err := h.Renewer.Sweep(h.t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
	got := sums(t, lines)
	for metric, want := range map[string]int{
		"ActivitiesFailed": 1, "ActivitiesCancelled": 2, "ActivitiesLeaked": 1, "OrchestrationsFailed": 1,
		"OrchestrationsCancelled": 1, "OrchestrationsTerminated": 1, "WatchLag": 120,
	} {
		if got[metric] != want {
			t.Errorf("got %s %d, want %d: %v", metric, got[metric], want, got)
		}
	}
}

// Without a cache, each turn replays the history, and the metrics count that.
func TestMetrics_withoutACache_countReplays(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := simhub.Options{
		Metrics: dispatch.MetricsByHub, Logger: slog.New(slog.NewJSONHandler(&log, nil)), CacheBytes: -1,
	}
	inBubble(t, o, func(_ context.Context, h *hub) { h.finish(h.start("chain", 2)) })
	got := sums(t, metricLines(t, log.String()))
	if got["CacheMisses"] != 2 || got["ReplayLatency"] != 2 || got["CacheHits"] != 0 {
		t.Errorf("got metrics %v, want 2 misses with latencies and no hit", got)
	}
}
