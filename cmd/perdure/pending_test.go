package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestStatus_pendingTasks_arePrinted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7")
	past := func(d time.Duration, e history.Event) history.Event { return at(-d, e) }
	in := func(d time.Duration) *time.Time {
		t := began.Add(d)
		return &t
	}
	h.Append("order-7", past(3*time.Hour, history.Event{Kind: history.TurnStarted, Version: "1.2.0"}),
		past(3*time.Hour, history.Event{Kind: history.ActivityScheduled, Name: "charge", Queue: "default"}),
		past(3*time.Hour, history.Event{Kind: history.ActivityScheduled, Name: "pack", Queue: "default"}),
		past(2*time.Hour, history.Event{Kind: history.ActivityScheduled, Name: "weigh", Queue: "default"}),
		past(time.Minute, history.Event{Kind: history.ActivityScheduled, Name: "label\x1b[2J", Queue: "default"}),
		past(time.Minute, history.Event{Kind: history.TimerCreated, FireAt: in(26 * time.Hour)}),
		past(time.Minute, history.Event{Kind: history.TimerCreated, FireAt: in(-time.Second)}),
		past(time.Minute, history.Event{
			Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "order-7/ship", Attempt: 1,
		}),
		past(time.Minute, history.Event{Kind: history.ExternalEventSubscribed, Name: "approved"}))
	h.SetRetries("x1", provider.ActivityRetry{
		ActivityID: 3, Attempt: 12, At: began.Add(42 * time.Minute), FailedAt: began.Add(-18 * time.Minute),
		Error: &history.Failure{Type: "BankError", Message: "card \x1b[31mdeclined: " + strings.Repeat("x", 300)},
	})
	h.SetActivityRecords("x1",
		provider.ActivityRecord{ActivityID: 4, UnknownAt: began.Add(-4 * time.Minute), UnknownBuild: "b-1"},
		provider.ActivityRecord{ActivityID: 5, LastHeartbeatAt: began.Add(-9 * time.Second)})
	h.mustRun("status", "order-7")
	h.wantGolden("status-pending.golden")

	if out := h.mustRun("status", "order-7", "--limit", "2"); !strings.Contains(out, "Pending: 8 (showing 2)\n") ||
		strings.Contains(out, "timer") {
		t.Errorf("with a limit: %s", out)
	}
	if out := h.mustRun("status", "order-7", "--pending=false"); strings.Contains(out, "charge") {
		t.Errorf("without: %s", out)
	}
	var response struct {
		Status  string `json:"status"`
		Pending struct {
			Total int `json:"total"`
			Items []struct {
				Name string `json:"name"`
			} `json:"items"`
		} `json:"pending"`
	}
	if err := json.Unmarshal([]byte(h.mustRun("status", "order-7", "--json")), &response); err != nil ||
		response.Status != "Running" || response.Pending.Total != 8 || response.Pending.Items[0].Name != "charge" {
		t.Errorf("as JSON: %+v, %v", response, err)
	}
	h.wantError(cli.CodeError, "--limit must be 1 to 1000", "status", "order-7", "--limit", "0")
}

func TestStatus_damagedHistory_isStillPrinted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7")
	h.Damage("x1", fmt.Errorf("item x#x1 h#0000000003: %w", provider.ErrCorrupt))
	if out := h.mustRun("status", "order-7"); !strings.Contains(out, "Status         Pending\n") ||
		!strings.Contains(out, "Pending tasks cannot be read: ") || !strings.Contains(out, "h#0000000003") {
		t.Errorf("printed %s", out)
	}
	if out := h.mustRun("status", "order-7", "--json"); !strings.Contains(out,
		`"pending":{"unread":{"code":"corrupt_history",`) {
		t.Errorf("printed %s", out)
	}
}

func TestStatus_queueHasNoWorker_isReported(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7")
	h.Append("order-7", at(-5*time.Minute, history.Event{Kind: history.TurnStarted, Version: "1.2.0"}),
		at(-5*time.Minute, history.Event{Kind: history.ActivityScheduled, Name: "charge", Queue: "payments"}))
	h.SetWorkers(map[string]time.Time{})
	if out := h.mustRun("status", "order-7"); !strings.Contains(out,
		"in queue payments: no worker has ever reported\n") || strings.Contains(out, "sent") {
		t.Errorf("printed %s", out)
	}
	h.SetWorkers(map[string]time.Time{"payments": began.Add(-3 * time.Hour)})
	if out := h.mustRun("status", "order-7"); !strings.Contains(out,
		"in queue payments: no worker has reported for 3h") {
		t.Errorf("printed %s", out)
	}
	if out := h.mustRun("status", "order-7", "--json"); !strings.Contains(out, `"noWorker":true,"workerSeenAt":"`) {
		t.Errorf("printed %s", out)
	}
}
