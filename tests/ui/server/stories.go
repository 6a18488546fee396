package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// script appends events at times relative to the start of an instance.
type script struct {
	h    *hub
	id   string
	from time.Time
}

func (s script) at(after time.Duration, e history.Event) {
	e.Time = s.from.Add(after)
	s.h.Append(s.id, e)
}

func (h *hub) large(end time.Time) {
	const id, long = "import-2026", 6 * time.Hour
	h.start(id, "import", "2.0.0", long, map[string]string{region: "eu"}, `{"files":24998}`)
	s := script{h, id, end.Add(-long)}
	s.at(200*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: "2.0.0", BuildID: "b7"})
	for n := int64(0); 2*n+2 < events; n++ {
		at := time.Second + time.Duration(n)*800*time.Millisecond
		s.at(at, history.Event{
			Kind: history.ActivityScheduled, Name: "copyFile", Queue: defaultQueue,
			Input: history.Payload(fmt.Sprintf(`{"file":"part-%05d.csv"}`, n)),
		})
		s.at(at+time.Duration(n%7+1)*90*time.Millisecond, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: 2*n + 3, Attempt: 1,
			Result: history.Payload(`{"rows":1200}`),
		})
	}
}

// schedules creates an active and a paused schedule.
func (h *hub) schedules(end time.Time) {
	run := func(id string, outcome schedule.Outcome, problem string) *schedule.Run {
		due := end.Add(-5 * time.Hour).Truncate(time.Hour)
		return &schedule.Run{
			InstanceID: id, Due: due, StartedAt: due.Add(time.Second), Outcome: outcome, Error: problem,
			EndedAt: due.Add(2 * time.Minute),
		}
	}
	for _, s := range []schedule.Status{
		{
			Schedule: schedule.Schedule{
				ID: "nightly", Orchestration: report, Expression: "cron(0 2 * * ? *)", TimeZone: "Europe/Berlin",
			},
			NextDue: end.Add(19 * time.Hour).Truncate(time.Hour),
			LastRun: run("order-00003", schedule.OutcomeCompleted, ""),
			Counts:  schedule.Counts{Started: 211, Failed: 1},
		},
		{
			Schedule: schedule.Schedule{ID: "sync", Orchestration: "import", Expression: "rate(5 minutes)"},
			Paused:   &schedule.Pause{At: end.Add(-3 * time.Hour), Message: "the supplier migrates"},
			LastRun:  run("order-00007", schedule.OutcomeFailed, "the file has no header"),
			Counts:   schedule.Counts{Started: 4021, Failed: 3, Skipped: 12},
		},
	} {
		id, long := schedule.InstanceID(s.Schedule.ID), 30*24*time.Hour
		entry := provider.ScheduleEntry{ID: s.Schedule.ID, NotedAt: end.Add(-long)}
		if err := h.PutScheduleEntry(context.Background(), entry); err != nil {
			panic(err)
		}
		h.start(id, schedule.OrchestrationName, "1", long, nil, `{}`)
		turn := history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b7"}
		script{h, id, end.Add(-long)}.at(time.Second, turn)
		doc, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		h.setStatus(id, doc)
	}
}

// entity creates an entity with two keys.
func (h *hub) entity(end time.Time) {
	for _, key := range []string{"tea", "coffee"} {
		id := perdure.EntityInstanceID("stock", key)
		h.start(id, perdure.EntityOrchestrationName("stock"), "1", 26*time.Hour, nil, `{"Available":14}`)
		s := script{h, id, end.Add(-26 * time.Hour)}
		s.at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1", BuildID: "b7"})
	}
}

func (h *hub) child(end time.Time) {
	const id = "ship-order-7"
	h.start(id, ship, v110, 51*time.Second, nil, `{"parcel":7}`)
	h.SetParent(id, history.Parent{InstanceID: "order-7", ExecutionID: "x", EventID: 12})
	s := script{h, id, end.Add(-51 * time.Second)}
	s.at(100*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v110, BuildID: "b7"})
	s.at(100*time.Millisecond, history.Event{Kind: history.ActivityScheduled, Name: "bookCourier", Queue: defaultQueue})
}

func (h *hub) poller(end time.Time) {
	const id = "poller"
	h.start(id, "poller", v100, 50*time.Hour, nil, `0`)
	s := script{h, id, end.Add(-50 * time.Hour)}
	s.at(time.Second, history.Event{Kind: history.TurnStarted, Version: v100, BuildID: "b6"})
	s.at(20*time.Hour, history.Event{Kind: history.OrchestrationContinuedAsNew, Input: history.Payload(`1`)})
	s.at(20*time.Hour+time.Second, history.Event{Kind: history.TurnStarted, Version: v100, BuildID: "b7"})
	fire := end.Add(4 * time.Hour)
	s.at(20*time.Hour+time.Second, history.Event{Kind: history.TimerCreated, FireAt: &fire, Message: "next look"})
}

func (h *hub) failed(end time.Time) {
	const id = "charge-31"
	h.start(id, "charge", v110, 3*time.Minute, nil, `{"amount":3100}`)
	s := script{h, id, end.Add(-3 * time.Minute)}
	why := &history.Failure{
		Type: "DeclinedError", Message: "the card was declined", NonRetryable: true,
		Cause: &history.Failure{Type: "error", Message: "bank: code 51"},
	}
	s.at(80*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v110, BuildID: "b7"})
	s.at(80*time.Millisecond, history.Event{
		Kind: history.ActivityScheduled, Name: chargeCard, Queue: payments,
		Retry: &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 1000},
	})
	s.at(40*time.Second, history.Event{Kind: history.ActivityFailed, SourceEventID: 3, Attempt: 3, Error: why})
	s.at(40*time.Second, history.Event{
		Kind:  history.OrchestrationFailed,
		Error: &history.Failure{Type: "ActivityError", Message: `activity chargeCard failed`, Cause: why},
	})
}

func (h *hub) terminated(end time.Time) {
	const id = "report/2026 <q3>"
	h.start(id, report, v100, time.Hour, map[string]string{region: "us"}, `{}`)
	s := script{h, id, end.Add(-time.Hour)}
	s.at(time.Second, history.Event{Kind: history.TurnStarted, Version: v100, BuildID: "b7"})
	s.at(9*time.Minute, history.Event{
		Kind: history.OrchestrationTerminated, Message: "not needed any more", RequestedBy: alice,
	})
}

func (h *hub) blocked(end time.Time) {
	const id = "order-9"
	h.start(id, fulfil, v120, 20*time.Minute, nil, `{"order":9}`)
	s := script{h, id, end.Add(-20 * time.Minute)}
	s.at(90*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v120, BuildID: "b7"})
	s.at(90*time.Millisecond, history.Event{
		Kind: history.ActivityScheduled, Name: "reserveStock", Queue: defaultQueue,
		Input: history.Payload(`{"sku":"tamper","quantity":1}`),
	})
	s.at(800*time.Millisecond, history.Event{
		Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Result: history.Payload(`"r-1"`),
	})
	s.at(900*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v120, BuildID: "b7"})
	s.at(900*time.Millisecond, history.Event{
		Kind: history.ActivityScheduled, Name: chargeCard, Queue: payments, Input: history.Payload(`{"amount":1200}`),
	})
	parked := history.Event{
		Kind: history.ActivityCompleted, ID: 7, Time: s.from.Add(2 * time.Minute), SourceEventID: 6, Attempt: 1,
		Result: history.Payload(`"c-1"`),
	}
	s.at(2*time.Minute,
		history.Event{
			Kind: history.InputsParked, BuildID: "b8", Inputs: []history.Event{parked},
			Error: &history.Failure{
				Type: history.TypeNondeterminism, Message: "the code does not match the history", EventID: 6,
				Expected: "ActivityScheduled \"chargeCard\"\n  queue payments\n  input {\"amount\":1200}",
				Got:      "ActivityScheduled \"authoriseCard\"\n  queue payments\n  input {\"amount\":1200}",
			},
		})
}

func (h *hub) paused(end time.Time) {
	const id = "order-10"
	h.start(id, fulfil, v110, 30*time.Minute, map[string]string{customer: "10"}, `{"order":10}`)
	s := script{h, id, end.Add(-30 * time.Minute)}
	s.at(90*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v110, BuildID: "b7"})
	s.at(90*time.Millisecond, history.Event{
		Kind: history.ActivityScheduled, Name: chargeCard, Queue: payments, Input: history.Payload(`{"amount":900}`),
	})
	s.at(5*time.Minute, history.Event{
		Kind: history.ExecutionSuspended, EventID: history.PauseIDPrefix + "1", RequestedBy: alice,
		Message: "the carrier asks to wait",
	})
	s.at(7*time.Minute, history.Event{
		Kind: history.ExecutionResumed, EventID: history.PauseIDPrefix + "2", RequestedBy: alice,
	})
	s.at(20*time.Minute, history.Event{
		Kind: history.ExecutionSuspended, EventID: history.PauseIDPrefix + "3", RequestedBy: alice,
		Message: "the carrier asks to wait once more",
	})
	parked := history.Event{
		Kind: history.ActivityCompleted, ID: 8, Time: s.from.Add(21 * time.Minute), SourceEventID: 3, Attempt: 1,
		Result: history.Payload(`"c-1"`),
	}
	s.at(21*time.Minute, history.Event{Kind: history.InputsParked, Inputs: []history.Event{parked}})
}

func (h *hub) waiting(end time.Time) {
	const id = "order-8"
	x := h.start(id, fulfil, v110, 12*time.Minute, map[string]string{customer: "8"}, `{"order":8}`)
	s := script{h, id, end.Add(-12 * time.Minute)}
	s.at(90*time.Millisecond, history.Event{Kind: history.TurnStarted, Version: v110, BuildID: "b7"})
	s.at(90*time.Millisecond, history.Event{
		Kind: history.ActivityScheduled, Name: chargeCard, Queue: payments,
		Retry: &history.RetryPolicy{InitialIntervalMs: 1000, MaxIntervalMs: 300_000},
	})
	s.at(90*time.Millisecond, history.Event{Kind: history.ActivityScheduled, Name: "printLabel", Queue: "printers"})
	h.SetRetries(x, provider.ActivityRetry{
		ActivityID: 3, Attempt: 5, At: end.Add(40 * time.Minute), FailedAt: end.Add(-30 * time.Second),
		Error: &history.Failure{Type: "timeout", Message: "the bank did not answer in 10 s"},
	})
}

// order starts an instance whose history has most kinds of events.
func (h *hub) order(end time.Time) { //nolint:funlen // a history, event by event
	const id, long = "order-7", 25*time.Hour + 52*time.Second
	x := h.start(id, fulfil, v110, long, map[string]string{customer: "7", region: "eu"},
		`{"order":7,"lines":[{"sku":"knock-box","quantity":2},{"sku":"tamper","quantity":1}],"express":true}`)
	s := script{h, id, end.Add(-long)}
	turn := func(at time.Duration) {
		s.at(at, history.Event{Kind: history.TurnStarted, Version: v110, BuildID: "b7"})
	}
	activity := func(at time.Duration, name, queue, input string) {
		s.at(at, history.Event{
			Kind: history.ActivityScheduled, Name: name, Queue: queue, Input: history.Payload(input),
		})
	}
	done := func(at time.Duration, of int64, attempt int, result string) {
		s.at(at, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: of, Attempt: attempt, Result: history.Payload(result),
		})
	}
	turn(140 * time.Millisecond)
	activity(140*time.Millisecond, "reserveStock", defaultQueue, `{"sku":"knock-box","quantity":2}`)
	activity(140*time.Millisecond, "reserveStock", defaultQueue, `{"sku":"tamper","quantity":1}`)
	activity(140*time.Millisecond, "quoteFast", payments, `{"carrier":"swift"}`)
	activity(140*time.Millisecond, "quoteSlow", payments, `{"carrier":"barge"}`)
	activity(140*time.Millisecond, "quoteOther", payments, `{"carrier":"mule"}`)
	done(900*time.Millisecond, 3, 1, `"r-1"`)
	done(4*time.Second, 4, 3, `"r-2"`)
	done(6*time.Second, 5, 1, `{"price":12.5}`)
	turn(6*time.Second + 100*time.Millisecond)
	s.at(6100*time.Millisecond, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 6, Last: 7}},
		Reason: "select_loser", RequestedBy: history.RequestedByOrchestration,
	})
	fire := s.from.Add(26 * time.Hour)
	s.at(6100*time.Millisecond, history.Event{Kind: history.TimerCreated, FireAt: &fire})
	s.at(6100*time.Millisecond, history.Event{Kind: history.ExternalEventSubscribed, Name: "packed"})
	s.at(25*time.Hour, history.Event{
		Kind: history.ExternalEventRaised, Name: "packed", EventID: "e-1", RequestedBy: alice,
		Data: history.Payload(`{"by":"bob","weight":1.7}`),
	})
	turn(25*time.Hour + 80*time.Millisecond)
	s.at(25*time.Hour+80*time.Millisecond, history.Event{
		Kind: history.TimerCancelled, SourceEventID: 13, Reason: "select_loser",
	})
	s.at(25*time.Hour+80*time.Millisecond, history.Event{
		Kind: history.CustomStatusSet, CustomStatus: history.Payload(`{"stage":"shipping"}`),
	})
	s.at(25*time.Hour+80*time.Millisecond, history.Event{
		Kind: history.SubOrchestrationScheduled, Name: ship, InstanceID: "ship-order-7", StartID: "st", Attempt: 1,
		Input: history.Payload(`{"parcel":7}`),
	})
	activity(25*time.Hour+80*time.Millisecond, "sendMail", defaultQueue, `{"to":"customer 7","about":"shipped"}`)
	s.at(25*time.Hour+18*time.Second, history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: 20, Reason: "requested", RequestedBy: alice,
		Message: "the mail server hangs",
	})
	activity(25*time.Hour+18*time.Second, "trackParcel", defaultQueue, `{"parcel":7}`)
	h.setStatus(id, json.RawMessage(`{"stage":"shipping"}`))
	h.SetActivityRecords(x,
		provider.ActivityRecord{
			ActivityID: 6, SeenAt: s.from.Add(7400 * time.Millisecond), EndedAt: s.from.Add(8900 * time.Millisecond),
			CancelOutcome: provider.OutcomeStopped,
		},
		provider.ActivityRecord{
			ActivityID: 7, SeenAt: s.from.Add(7100 * time.Millisecond), EndedAt: s.from.Add(22 * time.Second),
			CancelOutcome: provider.OutcomeAbandoned,
		},
		provider.ActivityRecord{
			ActivityID: 20, SeenAt: s.from.Add(25*time.Hour + 22*time.Second),
			EndedAt: s.from.Add(25*time.Hour + 27*time.Second), CancelOutcome: provider.OutcomeStopped,
		},
		provider.ActivityRecord{
			ActivityID: 22, LastHeartbeatAt: end.Add(-9 * time.Second), Details: []byte(`{"seen":3}`),
		})
}
