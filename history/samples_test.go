package history_test

import (
	"time"

	"github.com/perdure/perdure/history"
)

var (
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)
	later  = noon.Add(time.Hour)
	in     = history.Payload(`{"order":1}`)
	out    = history.Payload(`"done"`)
	failed = &history.Failure{
		Type: "DeclinedError", Message: "declined", Reason: "requested", NonRetryable: true,
		Cause: &history.Failure{Type: "error", Message: "cause"},
	}
	retry = &history.RetryPolicy{
		MaxAttempts: 3, InitialIntervalMs: 1000, MaxIntervalMs: 60_000, BackoffCoefficient: 1.5,
		NonRetryable: []string{"DeclinedError"},
	}
	parent = &history.Parent{InstanceID: "parent", ExecutionID: "01JPARENT", EventID: 7}
)

type sample struct {
	event  history.Event
	fields string // the fields in the row of the kind in the table of formats, without id, kind and time
}

// samples has an event of each kind with every field that the kind uses.
func samples() []sample {
	one := func(k history.Kind, source int64) history.Event {
		return history.Event{ID: 9, Kind: k, Time: noon, SourceEventID: source}
	}
	with := func(e history.Event, fields string, set func(*history.Event)) sample {
		set(&e)
		return sample{e, fields}
	}
	return []sample{
		with(one(history.OrchestrationStarted, 0),
			"name version input startId number tags startAt parent carriedEvents", func(e *history.Event) {
				e.Name, e.Version, e.Input, e.StartID, e.Number = "fulfil", "1.2", in, "start", 2
				e.Tags, e.StartAt, e.Parent = map[string]string{"team": "a"}, &later, parent
				e.CarriedEvents = []history.CarriedEvent{{Name: "approved", EventID: "e-1", Data: out}}
			}),
		with(one(history.TurnStarted, 0), "version buildId", func(e *history.Event) {
			e.Version, e.BuildID = "1.2", "b-1"
		}),
		with(one(history.ActivityScheduled, 0), "name queue input startToCloseMs retry", func(e *history.Event) {
			e.Name, e.Queue, e.Input, e.StartToCloseMs, e.Retry = "charge", "payments", in, 60_000, retry
		}),
		with(one(history.ActivityRetryScheduled, 3), "sourceEventId attempt fireAt error", func(e *history.Event) {
			e.Attempt, e.FireAt, e.Error = 2, &later, failed
		}),
		with(one(history.ActivityCompleted, 3), "sourceEventId result attempt", func(e *history.Event) {
			e.Result, e.Attempt = out, 1
		}),
		with(one(history.ActivityFailed, 3), "sourceEventId error attempt", func(e *history.Event) {
			e.Error, e.Attempt = failed, 1
		}),
		with(one(history.ActivityCancelRequested, 0), "sourceEventIds reason message requestedBy",
			func(e *history.Event) {
				e.SourceEventIDs = []history.Range{{First: 3, Last: 5}, {First: 8, Last: 8}}
				e.Reason, e.Message, e.RequestedBy = "select_loser", "m", history.RequestedByOrchestration
			}),
		with(one(history.TimerCreated, 0), "fireAt", func(e *history.Event) { e.FireAt = &later }),
		with(one(history.TimerFired, 3), "sourceEventId", func(*history.Event) {}),
		with(one(history.TimerCancelled, 3), "sourceEventId reason", func(e *history.Event) { e.Reason = "timeout" }),
		with(one(history.SubOrchestrationScheduled, 0), "name version instanceId startId input attempt",
			func(e *history.Event) {
				e.Name, e.Version, e.InstanceID, e.StartID, e.Input, e.Attempt = "ship", "1", "child", "start", in, 1
			}),
		with(one(history.SubOrchestrationCompleted, 3), "sourceEventId result", func(e *history.Event) {
			e.Result = out
		}),
		with(one(history.SubOrchestrationFailed, 3), "sourceEventId instanceId error", func(e *history.Event) {
			e.InstanceID, e.Error = "child", failed
		}),
		with(one(history.SubOrchestrationCancelRequested, 3), "sourceEventId instanceId reason message requestedBy",
			func(e *history.Event) {
				e.InstanceID, e.Reason, e.Message, e.RequestedBy = "child", "dropped_future", "m",
					history.RequestedByEngine
			}),
		with(one(history.SubOrchestrationCancelFailed, 3), "sourceEventId instanceId error", func(e *history.Event) {
			e.InstanceID, e.Error = "child", failed
		}),
		with(one(history.DetachedOrchestrationScheduled, 0), "name version instanceId startId input",
			func(e *history.Event) {
				e.Name, e.Version, e.InstanceID, e.StartID, e.Input = "audit", "1", "other", "start", in
			}),
		with(one(history.OutputFailed, 3), "sourceEventId error", func(e *history.Event) { e.Error = failed }),
		with(one(history.ExternalEventSubscribed, 0), "name", func(e *history.Event) { e.Name = "approved" }),
		with(one(history.ExternalEventRaised, 0), "name eventId data", func(e *history.Event) {
			e.Name, e.EventID, e.Data = "approved", "e-1", in
		}),
		with(one(history.ExternalEventSent, 0), "name instanceId data", func(e *history.Event) {
			e.Name, e.InstanceID, e.Data = "approved", "other", in
		}),
		with(one(history.ExternalEventDelivered, 3), "sourceEventId", func(*history.Event) {}),
		with(one(history.ExternalEventUndelivered, 3), "sourceEventId error", func(e *history.Event) {
			e.Error = failed
		}),
		with(one(history.UpdateReceived, 0), "name eventId data requestedBy", func(e *history.Event) {
			e.Name, e.EventID, e.Data, e.RequestedBy = "address", "u-1", in, alice
		}),
		with(one(history.UpdateAccepted, 0), "name eventId data requestedBy", func(e *history.Event) {
			e.Name, e.EventID, e.Data, e.RequestedBy = "address", "u-1", in, alice
		}),
		with(one(history.UpdateRejected, 0), "name eventId reason error", func(e *history.Event) {
			e.Name, e.EventID, e.Reason, e.Error = "address", "u-1", history.RejectedByValidator, failed
		}),
		with(one(history.UpdateCompleted, 3), "sourceEventId name eventId result", func(e *history.Event) {
			e.Name, e.EventID, e.Result = "address", "u-1", out
		}),
		with(one(history.UpdateAwaited, 0), "name eventId parent", func(e *history.Event) {
			e.Name, e.EventID, e.Parent = "address", "u-1", &history.Parent{
				InstanceID: "asks", ExecutionID: "01J", EventID: 3,
			}
		}),
		with(one(history.UpdateSent, 0), "name version orchestration instanceId eventId input data",
			func(e *history.Event) {
				e.Name, e.Version, e.Orchestration, e.InstanceID, e.EventID, e.Input, e.Data = "address", "2",
					"customer", "other", "u-1", in, in
			}),
		with(one(history.UpdateAnswered, 3), "sourceEventId instanceId result", func(e *history.Event) {
			e.InstanceID, e.Result = "other", out
		}),
		with(one(history.SideEffectRecorded, 0), "value", func(e *history.Event) { e.Value = in }),
		with(one(history.CustomStatusSet, 0), "customStatus", func(e *history.Event) { e.CustomStatus = in }),
		with(one(history.VersionMarked, 0), "change version", func(e *history.Event) {
			e.ChangeID, e.Version = "new-carrier", "2"
		}),
		with(one(history.CancelRequested, 0), "reason message requestedBy", func(e *history.Event) {
			e.Reason, e.Message, e.RequestedBy = "requested", "m", history.RequestedByClient
		}),
		with(one(history.InputsParked, 0), "inputs error", func(e *history.Event) {
			e.Inputs = []history.Event{{ID: 8, Kind: history.TimerFired, Time: noon, SourceEventID: 3}}
			e.Error = &history.Failure{Type: "nondeterminism", Message: "m", Expected: "a", Got: "b", EventID: 4}
		}),
		with(one(history.ExecutionSuspended, 0), "eventId message requestedBy", func(e *history.Event) {
			e.EventID, e.Message, e.RequestedBy = "perdure:pause:01JPAUSE", "m", alice
		}),
		with(one(history.ExecutionResumed, 0), "eventId message requestedBy", func(e *history.Event) {
			e.EventID, e.Message, e.RequestedBy = "perdure:pause:01JRESUME", "m", alice
		}),
		with(one(history.ExecutionRestarted, 0), "instanceId executionId parent inputs requestedBy",
			func(e *history.Event) {
				e.InstanceID, e.ExecutionID, e.RequestedBy = "order-7.restart-3f9c2a1b", "01JRESTART", alice
				e.Parent = &history.Parent{InstanceID: "order-7", ExecutionID: "01JEXEC", EventID: 9}
				e.Inputs = []history.Event{{Kind: history.TimerFired, Time: e.Time, SourceEventID: 7}}
			}),
		with(one(history.OrchestrationCompleted, 0), "output", func(e *history.Event) { e.Output = out }),
		with(one(history.OrchestrationFailed, 0), "error", func(e *history.Event) { e.Error = failed }),
		with(one(history.OrchestrationCancelled, 0), "reason message", func(e *history.Event) {
			e.Reason, e.Message = "requested", "m"
		}),
		with(one(history.OrchestrationTerminated, 0), "message", func(e *history.Event) { e.Message = "m" }),
		with(one(history.OrchestrationContinuedAsNew, 0), "executionId", func(e *history.Event) {
			e.ExecutionID = "01JNEXT"
		}),
	}
}

// alice is a caller.
const alice = "arn:aws:sts::123456789012:assumed-role/Operators/alice"

// grown has events with fields that are newer than the golden file of their kind. Each has its own file.
func grown() map[string]sample {
	return map[string]sample{
		"TimerCreated-named": {
			history.Event{ID: 9, Kind: history.TimerCreated, Time: noon, FireAt: &later, Message: "payment window"},
			"fireAt message",
		},
		"UpdateAccepted-received": {
			history.Event{
				ID: 9, Kind: history.UpdateAccepted, Time: noon, Name: "address", EventID: "u-1", SourceEventID: 3,
				RequestedBy: alice,
			},
			"name eventId sourceEventId requestedBy",
		},
		"UpdateRejected-received": {
			history.Event{
				ID: 9, Kind: history.UpdateRejected, Time: noon, Name: "address", EventID: "u-1", SourceEventID: 3,
				Reason: history.RejectedNoHandler, Error: failed,
			},
			"name eventId sourceEventId reason error",
		},
		"UpdateCompleted-failed": {
			history.Event{
				ID: 9, Kind: history.UpdateCompleted, Time: noon, SourceEventID: 3, Name: "address", EventID: "u-1",
				Error: failed,
			},
			"sourceEventId name eventId error",
		},
		"UpdateCompleted-unfinished": {
			history.Event{
				ID: 9, Kind: history.UpdateCompleted, Time: noon, SourceEventID: 3, Name: "address", EventID: "u-1",
				Reason: history.TerminalReason(history.OrchestrationCancelled),
			},
			"sourceEventId name eventId reason",
		},
		"UpdateCompleted-callers": {
			history.Event{
				ID: 9, Kind: history.UpdateCompleted, Time: noon, SourceEventID: 3, Name: "address", EventID: "u-1",
				Result: out, Callers: []history.Parent{*parent},
			},
			"sourceEventId name eventId result callers",
		},
		"UpdateRejected-callers": {
			history.Event{
				ID: 9, Kind: history.UpdateRejected, Time: noon, Name: "address", EventID: "u-1",
				Reason: history.RejectedByValidator, Error: failed, Callers: []history.Parent{*parent},
			},
			"name eventId reason error callers",
		},
		"UpdateAnswered-failed": {
			history.Event{
				ID: 9, Kind: history.UpdateAnswered, Time: noon, SourceEventID: 3, InstanceID: "other",
				Error: &history.Failure{Type: history.TypeUpdateFailed, Message: "m", Cause: failed},
			},
			"sourceEventId instanceId error",
		},
		"OrchestrationCompleted-callers": {
			history.Event{
				ID: 9, Kind: history.OrchestrationCompleted, Time: noon, Output: out,
				Callers: []history.Parent{*parent},
			},
			"output callers",
		},
		"ExternalEventRaised-sent": {
			history.Event{
				ID: 9, Kind: history.ExternalEventRaised, Time: noon, Name: "approved", EventID: "01JPARENT:7",
				Data: in, Parent: parent,
			},
			"name eventId data parent",
		},
		"OrchestrationCompleted-unobserved": {
			history.Event{
				ID: 9, Kind: history.OrchestrationCompleted, Time: noon, Output: out,
				Inputs: []history.Event{
					{Kind: history.ExternalEventRaised, Name: "approved", EventID: "01JPARENT:7", Parent: parent},
				},
			}, "output inputs",
		},
		"DetachedOrchestrationScheduled-delayed": {
			history.Event{
				ID: 9, Kind: history.DetachedOrchestrationScheduled, Time: noon, Name: "audit", InstanceID: "other",
				StartID: "start", Input: in, StartAt: &later,
			}, "name instanceId startId input startAt",
		},
		"OrchestrationStarted-restarted": {
			history.Event{
				ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "order", Input: in, StartID: "start",
				Number: 1, InstanceID: "order-7", ExecutionID: "01JPAST",
			}, "name input startId number instanceId executionId",
		},
		"ActivityScheduled-limits": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments", Input: in,
				StartToCloseMs: 60_000, HeartbeatMs: 5000, ScheduleToCloseMs: 3_600_000, Retry: retry,
			}, "name queue input startToCloseMs heartbeatMs scheduleToCloseMs retry",
		},
		"ActivityScheduled-inline": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "price", Queue: "default", Input: in,
				Inline: true, Attempt: 3, FireAt: &later, Retry: retry,
			},
			"name queue input inline attempt fireAt retry",
		},
		"ActivityScheduled-atmostonce": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments", Input: in,
				AtMostOnce: true,
			},
			"name queue input atMostOnce",
		},
		"ActivityCompleted-inline": {
			history.Event{
				ID: 9, Kind: history.ActivityCompleted, Time: noon, SourceEventID: 3, Result: out, Attempt: 1,
				Inline: true,
			},
			"sourceEventId result attempt inline",
		},
		"ActivityFailed-inline": {
			history.Event{
				ID: 9, Kind: history.ActivityFailed, Time: noon, SourceEventID: 3, Error: failed, Attempt: 2,
				Inline: true,
			},
			"sourceEventId error attempt inline",
		},
		"ActivityScheduled-jitter": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments", Input: in,
				Retry: &history.RetryPolicy{
					MaxAttempts: 3, InitialIntervalMs: 1000, MaxIntervalMs: 60_000, BackoffCoefficient: 1.5,
					NonRetryable: []string{"DeclinedError"}, Jitter: 0.2,
				},
			}, "name queue input retry",
		},
		"ActivityFailed-details": {
			history.Event{
				ID: 9, Kind: history.ActivityFailed, Time: noon, SourceEventID: 3, Attempt: 1,
				Error: &history.Failure{
					Type: "E1", Message: "m", Details: history.Payload(`{"code":51,"text":"<a>"}`),
					Cause: &history.Failure{
						Type: "E2", Message: "m", DetailsOmitted: "they are 5000 bytes of JSON, of 4096 at most",
					},
				},
			}, "sourceEventId error attempt",
		},
		"ActivityFailed-joined": {
			history.Event{
				ID: 9, Kind: history.ActivityFailed, Time: noon, SourceEventID: 3, Attempt: 1,
				Error: &history.Failure{Type: "E1", Message: "m", Joined: []string{"E2", "E3"}},
			}, "sourceEventId error attempt",
		},
		"ActivityScheduled-waitforcancellation": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments", Input: in,
				Cancel: &history.CancelDetails{WaitForCancellation: true},
			}, "name queue input cancel",
		},
		"ActivityScheduled-fairness": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments", Input: in,
				FairnessKey: "tenant-7",
			}, "name queue input fairnessKey",
		},
		"ActivityScheduled-exclusive": {
			history.Event{
				ID: 9, Kind: history.ActivityScheduled, Time: noon, Name: "charge", Queue: "payments.fifo", Input: in,
				ExclusiveKey: "account-17",
			}, "name queue input exclusiveKey",
		},
		"ActivityCompleted-ended": {
			history.Event{
				ID: 9, Kind: history.ActivityCompleted, Time: noon, SourceEventID: 3, Attempt: 1, Result: out,
				Cancel: &history.CancelDetails{Outcome: history.OutcomeReturned, SeenAt: &later},
			}, "sourceEventId result attempt cancel",
		},
		"ActivityFailed-ended": {
			history.Event{
				ID: 9, Kind: history.ActivityFailed, Time: noon, SourceEventID: 3, Attempt: 1,
				Error:  &history.Failure{Type: history.TypeCancelled, Message: "m", Reason: "requested"},
				Cancel: &history.CancelDetails{Outcome: history.OutcomeAbandoned, SeenAt: &later},
			}, "sourceEventId error attempt cancel",
		},
		"OutputFailed-ended": {
			history.Event{
				ID: 9, Kind: history.OutputFailed, Time: noon, SourceEventID: 3, Error: failed,
				Cancel: &history.CancelDetails{Outcome: history.OutcomeReturned},
			}, "sourceEventId error cancel",
		},
		"SubOrchestrationScheduled-waitforcancellation": {
			history.Event{
				ID: 9, Kind: history.SubOrchestrationScheduled, Time: noon, Name: "ship", InstanceID: "child",
				StartID: "start", Input: in, Attempt: 1,
				Cancel: &history.CancelDetails{WaitForCancellation: true},
			}, "name instanceId startId input attempt cancel",
		},
		"SubOrchestrationFailed-ended": {
			history.Event{
				ID: 9, Kind: history.SubOrchestrationFailed, Time: noon, SourceEventID: 3, InstanceID: "child",
				Error: &history.Failure{
					Type: history.TypeCancelled, Message: "m", Reason: "requested",
					CancelOutcome: history.OutcomeNeverStarted,
				},
			}, "sourceEventId instanceId error",
		},
		"ExternalEventRaised-references": {
			history.Event{
				ID: 9, Kind: history.ExternalEventRaised, Time: noon, Name: "approved", EventID: "e-1",
				Data: referred(history.LocationInputs),
			}, "name eventId data",
		},
		"OrchestrationStarted-references": {
			history.Event{
				ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "fulfil", StartID: "start", Number: 3,
				EventIDs:      []string{"e-1"},
				CarriedEvents: []history.CarriedEvent{{Name: "approved", EventID: "e-1", Data: referred("")}},
				Inputs: []history.Event{
					{
						Kind: history.ExternalEventRaised, Time: noon, Name: "approved", EventID: "e-2",
						Data: referred(history.LocationCarriedEvents),
					},
				},
			}, "name startId number eventIds carriedEvents inputs",
		},
		"OrchestrationStarted-requester": {
			history.Event{
				ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "fulfil", StartID: "start", Number: 1,
				RequestedBy: alice,
			}, "name startId number requestedBy",
		},
		"OrchestrationStarted-traced": {
			history.Event{
				ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "fulfil", StartID: "start", Number: 1,
				TraceParent: traced,
			}, "name startId number traceparent",
		},
		"TurnStarted-traced": {
			history.Event{
				ID: 2, Kind: history.TurnStarted, Time: noon, Version: "1.2", BuildID: "b-1", TraceParent: traced,
			}, "version buildId traceparent",
		},
		"ExternalEventRaised-requester": {
			history.Event{
				ID: 9, Kind: history.ExternalEventRaised, Time: noon, Name: "approved", EventID: "e-1",
				Data: history.Payload("1"), RequestedBy: alice,
			}, "name eventId data requestedBy",
		},
		"OrchestrationTerminated-requester": {
			history.Event{ID: 9, Kind: history.OrchestrationTerminated, Time: noon, Message: "m", RequestedBy: alice},
			"message requestedBy",
		},
		"TurnStarted-parked": {
			history.Event{
				ID: 9, Kind: history.TurnStarted, Time: noon, Version: "1.2", BuildID: "b-1", ParkedConsumed: 4,
			}, "version buildId parked",
		},
	}
}

// referred returns a reference to data at another location in the history of its instance.
func referred(field string) history.Payload {
	return history.DataLocation{
		ExecutionID: "01JEARLIER", Segment: 4, EventID: 17, Field: field, Index: min(len(field), 3),
	}.Refer([]byte(in))
}
