package wire_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/wire"
	"github.com/perdure/perdure/provider/worktoken"
)

// Golden files are messages that another release may have sent during a deployment. Add files, but never change or
// delete one.
func TestDecode_goldenFiles_readAndWriteTheSame(t *testing.T) {
	t.Parallel()
	closeBy := time.Date(2026, 1, 2, 13, 0, 0, 500_000_000, time.UTC)
	due, notBefore := closeBy.Add(time.Second), closeBy.Add(-50*time.Minute-500*time.Millisecond)
	item := provider.WorkItem{
		V: 1, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2, ActivityID: 5, Name: "charge",
		Queue: "payments", Attempt: 1,
		Input: history.Payload(`{"order":1}`), StartToCloseMs: 60_000, Retry: &history.RetryPolicy{
			MaxAttempts: 3, InitialIntervalMs: 1000, BackoffCoefficient: 2,
		},
	}
	limited := item
	limited.Input, limited.StartToCloseMs, limited.Retry = nil, 0, nil
	limited.Attempt, limited.NotBefore, limited.HeartbeatMs, limited.ScheduleToCloseDeadline = 2, &notBefore, 5000,
		&closeBy
	pickedUp := item
	pickedUp.Input, pickedUp.StartToCloseMs, pickedUp.Retry = nil, 0, nil
	pickedUp.PossibleDuplicate, pickedUp.Redrive = true, &provider.Redrive{Record: "c3f6", Times: 2}
	timer := provider.Timer{
		V: 1, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2, TimerID: 5, FireAt: due,
	}
	activitys := timer
	activitys.Activity = true
	fired := provider.Message{
		V: 1, Kind: provider.MessageTimerFired, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2,
		TimerID: 5, FireAt: &due,
	}
	ended := fired
	ended.Activity = true
	refresh := timer
	refresh.TimerID, refresh.Refresh = 2, 3
	wake := provider.Message{
		V: 1, Kind: provider.MessageWake, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2, TimerID: 2,
		Refresh: 3,
	}
	event := provider.Message{
		V: 1, Kind: provider.MessageEventRaised, InstanceID: "order-7", Name: "packed", EventID: "e1",
		Redrive: &provider.Redrive{Record: "c3f6", Times: 1},
	}
	again := item
	again.Attempt, again.NotBefore, again.PossibleDuplicate, again.ResendCount = 3, &notBefore, true, 2
	attempt, dueAttempt := timer, fired
	attempt.Attempt, dueAttempt.Attempt = 3, 3
	attempts := provider.Message{
		V: 1, Kind: provider.MessageActivityAttempts, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2,
		Outcomes: []provider.ActivityOutcome{
			{
				ActivityID: 5, Attempt: 2, Error: &history.Failure{Type: "StockError", Message: "sold out"},
				Run: "a-message.1", Segment: 2, RetryAt: &notBefore,
			},
			{
				ActivityID: 6, Attempt: 3, Error: &history.Failure{Type: "StockError", Message: "sold out"},
				Run: "another.4", Segment: 2,
			},
		},
	}
	fair := item
	fair.Retry, fair.FairnessKey, fair.Hub = nil, "tenant-7", "orders"
	exclusive := fair
	exclusive.FairnessKey, exclusive.Queue, exclusive.ExclusiveKey = "", history.ExclusiveQueue(item.Queue),
		"account-17"
	signed := limited
	signed.Hub = "orders"
	signed.Token = worktoken.NewSigner("orders",
		worktoken.NewKey("1", []byte(strings.Repeat("k", 32)))).Sign(&signed)
	awaited, awaitedTimer, seen := item, activitys, closeBy.Add(-time.Minute)
	awaited.Input, awaited.StartToCloseMs, awaited.Retry = nil, 0, nil
	awaited.WaitForCancellation, awaitedTimer.WaitForCancellation = true, true
	once := fair
	once.FairnessKey, once.AtMostOnce = "", true
	outcomes := provider.Message{
		V: 1, Kind: provider.MessageActivityOutcomes, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2,
		Outcomes: []provider.ActivityOutcome{
			{
				ActivityID: 5, Attempt: 1, Error: &history.Failure{Type: history.TypeCancelled, Reason: "requested"},
				Ended: history.OutcomeAbandoned, SeenAt: &seen,
			},
		},
	}
	moved := event
	moved.Redrive = &provider.Redrive{Record: "c3f6", Times: 2, MovedAt: &due}
	ofHub := event
	ofHub.Redrive, ofHub.Hub = nil, "orders"
	by := event
	by.Redrive, by.RequestedBy = nil, "arn:aws:sts::123456789012:assumed-role/Operators/alice"
	terminate := provider.Message{
		V: 1, Kind: provider.MessageTerminate, InstanceID: "order-7", Text: "enough", RequestedBy: by.RequestedBy,
	}
	paused := provider.Message{
		V: 1, Kind: provider.MessageExecutionSuspended, InstanceID: "order-7", StartID: "01JSTART",
		EventID: "perdure:pause:01JPAUSE", Text: "the carrier asks to wait", RequestedBy: by.RequestedBy,
	}
	resumed := paused
	resumed.Kind, resumed.Text = provider.MessageExecutionResumed, ""
	const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	itemTraced, eventTraced := limited, event
	itemTraced.TraceParent = traced
	eventTraced.Redrive, eventTraced.TraceParent = nil, traced
	pending := outcomes
	pending.Kind, pending.Outcomes = provider.MessageActivityPending,
		[]provider.ActivityOutcome{{ActivityID: 5, Attempt: 1, Pending: &provider.PendingAttempt{
			Name: "charge", Since: seen, Segment: 2, StartToCloseDeadline: &closeBy, HeartbeatMs: 5000,
			LastHeartbeatAt: &notBefore, ScheduleToCloseDeadline: &due, WaitForCancellation: true, GraceMs: 10_000,
			Retry: &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 1000, BackoffCoefficient: 2},
		}}}
	all := betweenInstances(traced, notBefore)
	maps.Copy(all, map[string]any{
		"activitypending": pending,
		"workitem-traced": itemTraced, "event-traced": eventTraced,
		"event-requester": by, "terminate-requester": terminate,
		"executionsuspended": paused, "executionresumed": resumed,
		"event-hub": ofHub,
		"workitem":  item, "workitem-limits": limited, "timer": timer, "timer-activity": activitys, "timerfired": fired,
		"timerfired-activity": ended,
		"workitem-resent":     again, "timer-attempt": attempt, "timerfired-attempt": dueAttempt,
		"activityattempts": attempts,
		"timer-refresh":    refresh, "wake-refresh": wake,
		"workitem-waitforcancellation": awaited, "timer-waitforcancellation": awaitedTimer,
		"workitem-fairness": fair, "workitem-exclusive": exclusive,
		"activityoutcomes-ended": outcomes,
		"workitem-token":         signed,
		"workitem-atmostonce":    once, "workitem-recovered": pickedUp, "event-recovered": event, "event-moved": moved,
	})
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			body := strings.TrimSpace(string(golden))
			if written, err := json.Marshal(want); err != nil || string(written) != body {
				t.Errorf("encoded\n%s, golden\n%s, %v", written, body, err)
			}
			if read, err := decode(name, body); err != nil || !reflect.DeepEqual(read, want) {
				t.Errorf("decoded\n%+v, want\n%+v, %v", read, want, err)
			}
		})
	}
}

// betweenInstances returns events and updates that one instance sends to another, and the responses.
func betweenInstances(traced history.TraceParent, at time.Time) map[string]any {
	sender := &history.Parent{InstanceID: "order-7", ExecutionID: "01JEXECUTION", EventID: 5}
	update := provider.Message{
		V: 1, Kind: provider.MessageUpdateSent, InstanceID: "@stock@tea", Hub: "orders", Name: "hold",
		EventID: "01JEXECUTION:5", Data: history.Payload(`"order-7"`),
		Parent: sender, SentAt: &at, SourceEventID: 5,
	}
	starts := update
	starts.EventID, starts.Orchestration, starts.Version, starts.Input, starts.TraceParent = "delivery-3", "@stock",
		"2", history.Payload(`{"Free":1}`), traced
	response := provider.Message{
		V: 1, Kind: provider.MessageUpdateAnswered, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Hub: "orders",
		SourceEventID: 5, ChildID: "@stock@tea", Result: history.Payload(`3`),
	}
	failed, rejected, over := response, response, response
	failed.Result, failed.TraceParent, failed.Error = nil, traced, &history.Failure{
		Type: history.TypeUpdateFailed, Message: "sold out",
		Cause: &history.Failure{Type: "StockError", Message: "sold out"},
	}
	rejected.Result, rejected.Error = nil, &history.Failure{
		Type: history.TypeUpdateRejected, Message: "it was rejected", Reason: history.RejectedLimit,
	}
	over.Result, over.Error = nil, outputs.EndedFailure("@stock@tea")
	event := update
	event.Kind, event.Name = provider.MessageEventSent, "packed"
	received := response
	received.Kind, received.Result = provider.MessageEventAnswered, nil
	received.SourceEventID, received.SourceEventIDs = 0,
		[]history.Range{{First: 5, Last: 6}}
	return map[string]any{
		"updatesent": update, "updatesent-starts": starts, "updateanswered": response, "updateanswered-failed": failed,
		"updateanswered-rejected": rejected, "updateanswered-ended": over,
		"eventsent": event, "eventanswered": received,
	}
}

// decode decodes the content of a golden file.
func decode(name, body string) (any, error) {
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "workitem":
		return wire.DecodeWorkItem(body)
	case "timer":
		return wire.DecodeTimer(body)
	default:
		return wire.DecodeMessage(body)
	}
}
