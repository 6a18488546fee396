package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The sweeper logs a metric about blocked instances and about instances whose first turn is late. A healthy hub logs no
// such line, because a metric without data points costs nothing.
func TestMetrics_instanceNeedsAttention_isLogged(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
		var log journal
		k, err := dispatch.NewRenewer(h.Provider, &dispatch.RenewerOptions{
			HubName: "shop", Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		sweepAndCompare := func(want map[string]any) {
			t.Helper()
			if _, err := k.Sweep(ctx); err != nil {
				t.Error(err)
			}
			all := log.String()
			wantAttention(t, all[seen:], want)
			seen = len(all)
		}
		sweepAndCompare(nil)

		in := h.start("sleeper", 0)
		lacks := h.orchestrator(versions("1"), "lacks")
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.passRecords(lacks)
		}
		h.startAs("i-2", "sleeper", 0)
		_ = h.loseMessages() // the wake
		time.Sleep(3 * time.Minute)
		if _, err := k.Sweep(ctx); err != nil { // wakes the Pending instance
			t.Error(err)
		}
		seen = len(log.String())
		time.Sleep(2 * time.Minute)
		sweepAndCompare(map[string]any{"hub": "shop", "InstancesBlocked": 1.0, "OldestPendingSeconds": 300.0})

		err = h.Provider.EnqueueForOrchestrator(ctx,
			provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID},
			provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-2"})
		if err != nil {
			t.Fatal(err)
		}
		h.passRecords(lacks)
		time.Sleep(10 * time.Minute)
		h.passRecords(lacks)
		sweepAndCompare(nil)
	})
}

// wantAttention fails the test unless the log lines of one sweep have one metric with these values, or none if want is
// nil.
func wantAttention(t *testing.T, lines string, want map[string]any) {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(lines) {
		var attrs map[string]any
		if err := json.Unmarshal([]byte(line), &attrs); err != nil {
			t.Fatal(err)
		}
		if attrs["event"] == logevent.InstanceAttentionNeeded {
			found = append(found, attrs)
		}
	}
	if want == nil {
		if len(found) > 0 {
			t.Errorf("got metrics %v, want none", found)
		}
		return
	}
	if len(found) != 1 {
		t.Fatalf("got %d metric lines, want 1: %s", len(found), lines)
	}
	for name, v := range want {
		if found[0][name] != v {
			t.Errorf("got %s %v, want %v", name, found[0][name], v)
		}
	}
	aws, err := json.Marshal(found[0]["_aws"])
	if err != nil || !strings.Contains(string(aws), `[{"Dimensions":[["hub"]],"Metrics":[`+
		`{"Name":"InstancesBlocked","Unit":"Count"},{"Name":"OldestPendingSeconds","Unit":"Seconds"}],`+
		`"Namespace":"perdure"}]`) {
		t.Errorf("got metric metadata %s, %v", aws, err)
	}
}

// An unregistered activity is a metric of its queue. The age of the oldest message does not show it, because SQS
// excludes messages that were received several times.
func TestMetrics_activityIsUnregistered_isLogged(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "new", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "added", 1).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		var log journal
		w := must(dispatch.NewWorker(perdure.NewRegistry(), h.Provider, &dispatch.WorkerOptions{
			HubName: "shop", Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		}))
		h.start("new", 0)
		h.turn(0)
		w.HandleRecords(ctx, h.receive(h.Provider.Config().WorkQueues["default"]))

		var line map[string]any
		if err := json.Unmarshal([]byte(log.String()), &line); err != nil {
			t.Fatal(err, log.String())
		}
		if line["hub"] != "shop" || line["queue"] != "default" || line["ActivitiesUnregistered"] != 1.0 {
			t.Errorf("got log line %v, want one unregistered activity of the queue", line)
		}
		aws, err := json.Marshal(line["_aws"])
		if err != nil || !strings.Contains(string(aws), `[{"Dimensions":[["hub","queue"]],"Metrics":[`+
			`{"Name":"ActivitiesUnregistered","Unit":"Count"}],"Namespace":"perdure"}]`) {
			t.Errorf("got metric metadata %s, %v", aws, err)
		}
	})
}
