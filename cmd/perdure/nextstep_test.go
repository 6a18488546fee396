package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// buildHash is a build ID as the CDK construct sets it.
var buildHash = strings.Repeat("0f1e2d3c4b5a6978", 4)

// startOrder starts order-7 and runs a first turn with the events.
func startOrder(h *tool, events ...history.Event) {
	h.t.Helper()
	h.mustRun("start", "fulfil", "--id", "order-7")
	turn := history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: buildHash}
	for _, e := range append([]history.Event{turn}, events...) {
		h.Append("order-7", at(-10*time.Minute, e))
	}
}

// block blocks an instance, and parks an external event.
func block(h *tool, id string) {
	h.Append(id, at(-5*time.Minute, history.Event{
		Kind: history.InputsParked, BuildID: strings.Repeat("9a", 32),
		Error: &history.Failure{
			Type: history.TypeNondeterminism, Message: "nondeterminism in instance " + id + " at event 3",
		},
		Inputs: []history.Event{{Kind: history.ExternalEventRaised, Name: "packed", RequestedBy: "ann"}},
	}))
}

// callChild returns the event that schedules a child.
func callChild(id string) history.Event {
	return history.Event{Kind: history.SubOrchestrationScheduled, Name: "parcel", InstanceID: id, Attempt: 1}
}

// subscribe returns the event that waits for an external event.
func subscribe(name string) history.Event {
	return history.Event{Kind: history.ExternalEventSubscribed, Name: name}
}

func TestStatus_causes_namesNextStep(t *testing.T) {
	t.Parallel()
	charge := history.Event{
		Kind: history.ActivityScheduled, Name: "charge", Queue: "default",
		Retry: &history.RetryPolicy{MaxAttempts: 20, InitialIntervalMs: 1000},
	}
	retry := provider.ActivityRetry{
		ActivityID: 3, Attempt: 2, At: began.Add(357 * time.Second), FailedAt: began.Add(-10 * time.Minute),
		Error: &history.Failure{Type: history.TypeError, Message: "card provider: " + strings.Repeat("no answer ", 30)},
	}
	for name, setUp := range map[string]func(h *tool){
		"event": func(h *tool) { startOrder(h, subscribe("card 'verified'")) },
		"retry": func(h *tool) {
			startOrder(h, charge, subscribe("packed"))
			h.SetRetries("x1", retry)
		},
		"retrydue": func(h *tool) {
			startOrder(h, charge)
			due := retry
			due.At = began.Add(-time.Minute)
			h.SetRetries("x1", due)
		},
		"blocked": func(h *tool) {
			startOrder(h, subscribe("packed"))
			block(h, "order-7")
		},
		"blockedchild": func(h *tool) {
			h.mustRun("start", "hello", "--id", "parcel-books")
			block(h, "parcel-books")
			startOrder(h, charge, callChild("parcel-toys"), callChild("parcel-books"))
			h.SetRetries("x2", retry)
		},
		"paused": func(h *tool) {
			h.mustRun("start", "hello", "--id", "parcel-books")
			block(h, "parcel-books")
			startOrder(h, callChild("parcel-books"))
			h.Append("order-7", at(-time.Minute, history.Event{
				Kind: history.ExecutionSuspended, Message: "audit", RequestedBy: "ann",
			}))
		},
		"missingchild": func(h *tool) { startOrder(h, callChild("parcel-books")) },
		"child": func(h *tool) {
			h.mustRun("start", "hello", "--id", "parcel-books")
			startOrder(h, callChild("parcel-books"))
		},
		"noworker": func(h *tool) {
			startOrder(h, charge)
			h.SetWorkers(map[string]time.Time{})
		},
		"sent": func(h *tool) {
			startOrder(h, history.Event{Kind: history.ExternalEventSent, Name: "notice", InstanceID: "ann"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			setUp(h)
			out := h.mustRun("status", "order-7")
			h.wantGolden("status-" + name + ".golden")
			for line := range strings.Lines(out) {
				if utf8.RuneCountInString(line) > term.ScreenWidth+1 { // including the line feed
					t.Errorf("longer than %d columns: %s", term.ScreenWidth, line)
				}
			}
		})
	}
}

// A printed command must select the hub of the command that prints it.
func TestStatus_otherHub_nextCommandSelectsIt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	startOrder(h, subscribe("packed"))
	out := h.mustRun("status", "order-7", "--hub", "orders")
	if !strings.HasSuffix(out, "\n      perdure raise order-7 packed --hub orders\n") {
		t.Errorf("with --hub: %s", out)
	}
	h.env["PERDURE_HUB"] = "orders"
	if out := h.mustRun("status", "order-7"); !strings.HasSuffix(out, "\n      perdure raise order-7 packed\n") {
		t.Errorf("with PERDURE_HUB: %s", out)
	}
}

func TestStatus_instanceEnded_hasNoNextStep(t *testing.T) {
	t.Parallel()
	h := setup(t)
	startOrder(h)
	h.Append("order-7", completed("1"))
	if out := h.mustRun("status", "order-7"); strings.Contains(out, "Next:") {
		t.Errorf("printed %s", out)
	}
}

func TestStatus_firstTurnMissing_namesDoctor(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	if out := h.mustRun("status", "one"); strings.Contains(out, "Next:") {
		t.Errorf("just started: %s", out)
	}
	h.now = func() time.Time { return began.Add(time.Hour) }
	if out := h.mustRun("status", "one"); !strings.HasSuffix(out, "\n      perdure doctor\n") {
		t.Errorf("after an hour: %s", out)
	}
}

func TestStatus_manyChildren_readsTen(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var calls []history.Event
	for i := range 30 {
		id := fmt.Sprintf("parcel-%02d", i)
		h.mustRun("start", "hello", "--id", id)
		calls = append(calls, callChild(id))
	}
	startOrder(h, calls...)
	reads := func(args ...string) int {
		before := h.Reads()
		h.mustRun(append([]string{"status", "order-7"}, args...)...)
		return h.Reads() - before
	}
	if without, with := reads("--pending=false"), reads(); with-without != describe.MaxChildReads {
		t.Errorf("%d reads with pending tasks, %d without", with, without)
	}
	if without, with := reads("--pending=false", "--json"), reads("--json"); with != without {
		t.Errorf("as JSON: %d reads with pending tasks, %d without", with, without)
	}
	out := h.mustRun("status", "order-7")
	if strings.Count(out, "  Pending\n") != describe.MaxChildReads ||
		strings.Count(out, "  —\n") != 30-describe.MaxChildReads {
		t.Errorf("printed %s", out)
	}
}
