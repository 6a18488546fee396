package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The history has every outcome of a cancellation, and a name with control characters.
func TestWhy_allOutcomes_arePrinted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--input", "7")
	h.mustRun("why", "order-7")
	h.wantGolden("why-nothing.golden")
	ms := time.Millisecond
	due := began.Add(time.Hour)
	engine := func(k history.Kind, id int64, reason string) history.Event {
		return at(1200*ms, history.Event{
			Kind: k, SourceEventID: id, Reason: reason, RequestedBy: history.RequestedByEngine,
		})
	}
	h.Append("order-7",
		at(120*ms, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(120*ms, history.Event{Kind: history.ActivityScheduled, Name: "charge"}),
		at(120*ms, history.Event{Kind: history.ActivityScheduled, Name: "pack"}),
		at(120*ms, history.Event{Kind: history.ActivityScheduled, Name: "weigh"}),
		at(120*ms, history.Event{Kind: history.ActivityScheduled, Name: "label\x1b[2J"}),
		at(120*ms, history.Event{Kind: history.ActivityScheduled, Name: "notify"}),
		at(120*ms, history.Event{Kind: history.TimerCreated, FireAt: &due}),
		at(120*ms, history.Event{Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "order-7/ship"}),
		at(120*ms, history.Event{Kind: history.SubOrchestrationScheduled, Name: "bill", InstanceID: "order-7/bill"}),
		at(1200*ms, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		at(1200*ms, history.Event{
			Kind: history.CancelRequested, Reason: "requested", Message: "customer withdrew",
			RequestedBy: history.RequestedByClient,
		}),
		engine(history.ActivityCancelRequested, 3, "requested"),
		engine(history.ActivityCancelRequested, 4, "requested"),
		engine(history.ActivityCancelRequested, 5, "requested"),
		engine(history.ActivityCancelRequested, 6, "requested"),
		engine(history.ActivityCancelRequested, 7, "requested"),
		at(1200*ms, history.Event{Kind: history.TimerCancelled, SourceEventID: 8, Reason: "requested"}),
		engine(history.SubOrchestrationCancelRequested, 9, "parent_cancelled"),
		engine(history.SubOrchestrationCancelRequested, 10, "parent_cancelled"),
		at(2*time.Second, history.Event{
			Kind: history.SubOrchestrationFailed, SourceEventID: 9,
			Error: &history.Failure{Type: history.TypeCancelled},
		}),
		at(2*time.Second, history.Event{
			Kind: history.SubOrchestrationCancelFailed, SourceEventID: 10,
			Error: &history.Failure{Type: history.TypeEnded, Message: "it has ended"},
		}),
		at(65*time.Second, history.Event{
			Kind: history.OrchestrationCancelled, Reason: "requested", Message: "customer withdrew",
		}),
	)
	seen := began.Add(1900 * ms)
	left := func(id int64, after time.Duration, end provider.CancelOutcome) provider.ActivityRecord {
		return provider.ActivityRecord{ActivityID: id, SeenAt: seen, EndedAt: seen.Add(after), CancelOutcome: end}
	}
	h.SetActivityRecords("x1",
		left(3, 12*ms, provider.OutcomeStopped), left(4, 3*time.Second, provider.OutcomeCompleted),
		left(5, 10*time.Second, provider.OutcomeAbandoned), left(6, 0, provider.OutcomeNeverStarted))
	h.mustRun("why", "order-7")
	h.wantGolden("why.golden")
}

// Without cancellations, why shows the failure of the instance and the commands with its details.
func TestWhy_noCancellations_printsFailure(t *testing.T) {
	t.Parallel()
	h := setup(t)
	why := &history.Failure{Type: "CardDeclined", Message: "the card has expired\nand more"}
	for id, end := range map[string]history.Event{
		"failed":  {Kind: history.OrchestrationFailed, Error: why},
		"blocked": {Kind: history.InputsParked, BuildID: "b", Error: why},
	} {
		h.mustRun("start", "fulfil", "--id", id, "--input", "7")
		h.Append(id, at(time.Second, end))
		got := h.mustRun("why", id)
		for _, want := range []string{
			"no cancellations; the instance ", id + ": CardDeclined: the card has expired\n",
			"see perdure status " + id + " and perdure history " + id,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("it lacks %q:\n%s", want, got)
			}
		}
	}
}

func TestWhy_pastExecution_printsItsCancellations(t *testing.T) {
	t.Parallel()
	h := continuedTwice(t)
	got := h.mustRun("why", "poller", "--execution", "x2", "--json")
	if !strings.HasPrefix(got, `{"instanceId":"poller","executionId":"x2","startedAt":"`) ||
		!strings.HasSuffix(got, `","items":[]}`+"\n") {
		t.Errorf("printed %s", got)
	}
	h.wantError(cli.CodeError, "instance poller has no execution x9; see perdure executions poller", "why", "poller",
		"--execution", "x9")
	h.wantError(cli.CodeError, "cursor does not belong to this list", "why", "poller", "--cursor", "x")
	h.wantError(cli.CodeError, "--limit must be 1 to 1000, is 0", "why", "poller", "--limit", "0")
	h.wantError(cli.CodeError, "run perdure list", "why", "missing")
}
