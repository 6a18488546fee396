package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/history"
)

// order is a history with two activities, a timer, a failure, a payload that is too long for its line, and a payload
// with control characters.
func order(t *testing.T) *tool {
	t.Helper()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--input", `{"order": 7, "items": ["a", "b"]}`)
	due := began.Add(time.Hour)
	ms := time.Millisecond
	h.Append("order-7",
		at(120*ms, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(120*ms, history.Event{
			Kind: history.ActivityScheduled, Name: "charge", Queue: "payments", Input: history.Payload(`{"amount":12}`),
		}),
		at(120*ms, history.Event{
			Kind: history.ActivityScheduled, Name: "pack", Queue: "default",
			Input: history.Payload(`"` + strings.Repeat("long ", 40) + `"`),
		}),
		at(120*ms, history.Event{Kind: history.TimerCreated, FireAt: &due}),
		at(1200*ms, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(1200*ms, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1,
			Result: history.NewInlinePayload([]byte(`{"ref":"r-1"}`)),
		}),
		at(65*time.Second, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(65*time.Second,
			history.Event{Kind: history.ActivityFailed, SourceEventID: 4, Attempt: 3, Error: &history.Failure{
				Type: "PackError", Message: "belt\nstopped\x1b[2J", Cause: &history.Failure{
					Type: history.TypeTimeout, Message: "60s",
				},
			}}),
		at(65*time.Second, history.Event{
			Kind: history.ActivityScheduled, Name: "refund", Queue: "payments", Input: history.Payload(`{"amount":12}`),
		}),
	)
	return h
}

func TestHistory_runningInstance_printsEvents(t *testing.T) {
	t.Parallel()
	h := order(t)
	h.Append("order-7",
		at(66*time.Second, history.Event{Kind: history.TimerCreated, FireAt: &began}),
		at(66*time.Second, history.Event{Kind: history.TimerCreated, FireAt: &began}),
		at(66*time.Second, history.Event{
			Kind: history.TimerCancelled, SourceEventIDs: []history.Range{{First: 11, Last: 12}},
			Reason: "select_loser",
		}),
	)
	h.mustRun("history", "order-7")
	h.wantGolden("history-running.golden")
}

// The command marks inline activities and their outcomes.
func TestHistory_inlineActivity_isMarked(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--input", `{}`)
	h.Append("order-7",
		at(0, history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b"}),
		at(0, history.Event{Kind: history.ActivityScheduled, Name: "price", Queue: "default", Inline: true}),
		at(time.Millisecond, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Inline: true, Result: history.Payload("9"),
		}),
	)
	h.mustRun("history", "order-7")
	lines := slices.DeleteFunc(strings.Split(h.out.String(), "\n"), func(line string) bool {
		return !strings.Contains(line, "inline")
	})
	if len(lines) != 2 || !strings.Contains(lines[0], "ActivityScheduled") ||
		!strings.Contains(lines[1], "of #3 inline") {
		t.Errorf("marked are %q", lines)
	}
}

func TestHistory_versionMarked_printsChangeAndVersion(t *testing.T) {
	t.Parallel()
	h := order(t)
	h.Append("order-7", at(66*time.Second, history.Event{
		Kind: history.VersionMarked, ChangeID: "new-carrier", Version: "2",
	}))
	shown := slices.IndexFunc(strings.Split(h.mustRun("history", "order-7"), "\n"), func(line string) bool {
		return strings.Contains(line, "VersionMarked") && strings.Contains(line, "new-carrier") &&
			strings.Contains(line, "version 2")
	})
	if shown < 0 {
		t.Errorf("it is not shown: %s", h.out.String())
	}
}

func TestHistory_endedInstance_printsEvents(t *testing.T) {
	t.Parallel()
	h := order(t)
	h.Append("order-7",
		at(25*time.Hour, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(25*time.Hour, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: 10, Attempt: 1, Result: history.Payload(`null`),
		}),
		at(25*time.Hour, history.Event{
			Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 10, Last: 10}},
			Reason: "select_loser",
		}),
		at(25*time.Hour, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(`"refunded"`)}),
	)
	h.mustRun("history", "order-7")
	h.wantGolden("history-ended.golden")
}

func TestHistory_json_hasDocumentFormat(t *testing.T) {
	t.Parallel()
	h := order(t)
	var doc struct {
		Format     string `json:"format"`
		InstanceID string `json:"instanceId"`
		Name       string `json:"name"`
		Executions []struct {
			ExecutionID string          `json:"executionId"`
			Number      int             `json:"number"`
			Events      json.RawMessage `json:"events"`
		} `json:"executions"`
	}
	if err := json.Unmarshal([]byte(h.mustRun("history", "order-7", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Format != "perdure.history/1" || doc.InstanceID != "order-7" || doc.Name != "fulfil" ||
		len(doc.Executions) != 1 {
		t.Fatalf("document %+v", doc)
	}
	x := doc.Executions[0]
	events, err := history.Decode(x.Events)
	if err != nil || x.ExecutionID != "x1" || x.Number != 1 || len(events) != 10 {
		t.Errorf("execution %s number %d of %d events: %v", x.ExecutionID, x.Number, len(events), err)
	}
	if result, ok := events[6].Result.Document(); !ok || string(result) != `{"ref":"r-1"}` {
		t.Errorf("result %s", result)
	}
}

// history shows the name of a timer that is created or fires. status shows the name of a pending timer.
func TestHistoryAndStatus_timerWithName_printName(t *testing.T) {
	t.Parallel()
	h := order(t)
	due := began.Add(time.Hour)
	h.Append("order-7",
		// #11
		at(66*time.Second, history.Event{Kind: history.TimerCreated, FireAt: &due, Message: "payment window\x1b[2J"}),
		at(66*time.Second, history.Event{Kind: history.TimerCreated, FireAt: &due, Message: "pause"}),
		at(67*time.Second, history.Event{Kind: history.TimerFired, SourceEventID: 12}))
	shown := h.mustRun("history", "order-7")
	for _, want := range [][]string{
		{"11 ", "TimerCreated", "payment window", "due "},
		{"12 ", "TimerCreated", "pause"},
		{"13 ", "TimerFired", "pause", "1.00s"},
	} {
		if !slices.ContainsFunc(strings.Split(shown, "\n"), func(line string) bool {
			return !slices.ContainsFunc(want, func(word string) bool {
				return !strings.Contains(line, word)
			}) && strings.Count(line, want[2]) == 1
		}) {
			t.Errorf("no line has %q once: %s", want, shown)
		}
	}
	if waits := h.mustRun("status", "order-7"); !strings.Contains(waits, "timer") ||
		strings.Count(waits, "payment window") != 1 || strings.Contains(waits+shown, "\x1b") {
		t.Errorf("it waits for %s", waits)
	}
}

// The detail of parked inputs begins with their names and senders. The detail of a child begins with its instance ID.
func TestHistory_parkedInputsAndChildren_nameTheirInstances(t *testing.T) {
	t.Parallel()
	h := setup(t)
	startOrder(h, callChild("parcel-books"))
	parked := func(inputs ...history.Event) {
		why := &history.Failure{Type: history.TypeUnregistered, Message: "not here"}
		e := history.Event{Kind: history.InputsParked, BuildID: buildHash, Error: why, Inputs: inputs}
		h.Append("order-7", at(0, e))
	}
	sender := &history.Parent{InstanceID: "depot"}
	packed := history.Event{Kind: history.ExternalEventRaised, Name: "packed", Parent: sender}
	parked(packed, history.Event{Kind: history.CancelRequested}, history.Event{Kind: history.CancelRequested})
	parked(history.Event{Kind: history.SubOrchestrationCompleted, SourceEventID: 3})
	parked(history.Event{Kind: history.ExternalEventRaised, Name: "paid", RequestedBy: "ann"})
	var events []history.Event
	for e, err := range client.New(h.Provider).History(t.Context(), "order-7") {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	l := describe.NewEventLog(events)
	for id, want := range map[int]string{
		3: "instance parcel-books",
		4: "event packed from instance depot, and 2 more, build 0f1e2d3c4b5a unregistered: not here",
		5: "SubOrchestrationCompleted of #3, build 0f1e2d3c4b5a unregistered: not here",
		6: "event paid by ann, build 0f1e2d3c4b5a unregistered: not here",
	} {
		if got := l.Detail(&events[id-1]); got != want {
			t.Errorf("event %d: %s, want %s", id, got, want)
		}
	}
	h.mustRun("history", "order-7")
	h.wantGolden("history-parked.golden")
}
