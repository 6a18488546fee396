package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// holdInput configures an instance whose update handler waits for the event "go". End selects its end after the event
// "end".
type holdInput struct{ End string }

// addHold adds the orchestrations "holds", which has the handler, and "caller", which calls it.
func addHold(r *perdure.Registry) *perdure.Registry {
	perdure.AddOrchestration(r, "holds", func(ctx *perdure.OrchestrationContext, in holdInput) (int, error) {
		err := perdure.SetUpdateHandler(ctx, "hold", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
		}, perdure.WithValidator(func(n int) error {
			if n < 0 {
				return errors.New("negative")
			}
			return nil
		}))
		if err == nil {
			_, err = perdure.WaitForExternalEvent[int](ctx, "end").Await(ctx)
		}
		switch {
		case err != nil:
			return 0, err
		case in.End == "fails":
			return 0, errors.New("it failed")
		case in.End == "continue":
			return perdure.ContinueAsNew[int](ctx, holdInput{})
		default:
			return 1, nil
		}
	})
	perdure.AddOrchestration(r, "caller", callsHold)
	return r
}

// callsHold calls the update "hold" of instance c, and returns the result or the type of the error.
func callsHold(ctx *perdure.OrchestrationContext, n int) (string, error) {
	v, err := perdure.CallUpdate[int](ctx, "c", "hold", n).Await(ctx)
	if e, failed := errors.AsType[*perdure.CallUpdateError](err); failed {
		if e.InstanceID != "c" || e.Update != "hold" || !strings.Contains(e.Error(), e.UpdateID) || e.UpdateID == "" {
			return "", fmt.Errorf("the error does not name the update: %w", e)
		}
		return e.Type + e.RejectReason, nil
	}
	return fmt.Sprint(v), err
}

// raiseNamed sends an event with a name, which is also its ID.
func (h *hub) raiseNamed(in provider.Instance, name string) {
	h.t.Helper()
	h.send(provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: name, EventID: name,
		Data: history.Payload("5"),
	})
}

// The caller of an update receives a response for each end of the called instance.
func TestR31_calledInstanceEnds_callerReceivesAResponse(t *testing.T) {
	t.Parallel()
	deploy := func(h *hub, r *perdure.Registry, build string) {
		if err := h.Deploy(h.t.Context(), r, build); err != nil {
			h.t.Fatal(err)
		}
	}
	broken := func() *perdure.Registry {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "holds", func(ctx *perdure.OrchestrationContext, _ holdInput) (int, error) {
			return 0, perdure.Sleep(ctx, time.Hour)
		})
		perdure.AddOrchestration(r, "caller", callsHold)
		return r
	}
	for name, tt := range map[string]struct {
		in     holdInput
		before func(h *hub, in provider.Instance)
		then   func(h *hub, in provider.Instance)
		want   string
	}{
		"handler returns": {then: func(h *hub, in provider.Instance) { h.raiseNamed(in, "go") }, want: "5"},
		"instance completes": {
			then: func(h *hub, in provider.Instance) { h.raiseNamed(in, "end") }, want: history.TypeUpdateAborted,
		},
		"instance fails": {
			in:   holdInput{"fails"},
			then: func(h *hub, in provider.Instance) { h.raiseNamed(in, "end") }, want: history.TypeUpdateAborted,
		},
		"instance continues as new": {
			in:   holdInput{"continue"},
			then: func(h *hub, in provider.Instance) { h.raiseNamed(in, "end") }, want: history.TypeUpdateAborted,
		},
		"instance is cancelled": {then: func(h *hub, in provider.Instance) {
			h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested"})
		}, want: history.TypeUpdateAborted},
		"instance is terminated": {then: (*hub).terminate, want: history.TypeUpdateAborted},
		"instance is purged": {
			then: func(h *hub, in provider.Instance) { h.purge(in.InstanceID) }, want: history.TypeUpdateAborted,
		},
		"paused instance is terminated": {
			before: func(h *hub, in provider.Instance) { h.pause(in, "p1"); h.turns() },
			then:   (*hub).terminate, want: history.TypeEnded,
		},
		"paused instance is purged": {
			before: func(h *hub, in provider.Instance) { h.pause(in, "p1"); h.turns() },
			then:   func(h *hub, in provider.Instance) { h.purge(in.InstanceID) }, want: history.TypeEnded,
		},
		"paused instance is resumed": {
			before: func(h *hub, in provider.Instance) { h.pause(in, "p1"); h.turns() },
			then: func(h *hub, in provider.Instance) {
				h.resume(in, "r1")
				h.turns()
				h.raiseNamed(in, "go")
			}, want: "5",
		},
		"blocked instance is terminated": {
			before: func(h *hub, _ provider.Instance) { deploy(h, broken(), "b2") },
			then:   (*hub).terminate, want: history.TypeEnded,
		},
		"blocked instance is fixed": {
			before: func(h *hub, _ provider.Instance) { deploy(h, broken(), "b2") },
			then: func(h *hub, in provider.Instance) {
				deploy(h, addHold(registry()), "b3")
				h.watch()
				h.serveFor(30 * time.Minute)
				h.raiseNamed(in, "go")
			}, want: "5",
		},
		"instance ends when it consumes the parked inputs": {
			before: func(h *hub, in provider.Instance) {
				h.pause(in, "p1")
				h.raiseNamed(in, "end")
				h.turns()
			},
			then: func(h *hub, in provider.Instance) { h.resume(in, "r1") }, want: history.TypeEnded,
		},
		"instance has ended": {before: func(h *hub, in provider.Instance) {
			h.raiseNamed(in, "end")
			h.turns()
		}, want: history.TypeEnded},
		"instance was purged": {
			before: func(h *hub, in provider.Instance) { h.purge(in.InstanceID) }, want: history.TypeNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, crash := range []bool{false, true} { // of the session, before it responds
				intercept, _ := crashOnce(false, func(c simaws.Call) bool {
					return crash && sendsKind(c, provider.MessageUpdateAnswered)
				})
				o := simhub.Options{Registry: addHold(registry()), Intercept: intercept}
				inBubble(t, o, func(_ context.Context, h *hub) {
					in := h.startAs("c", "holds", tt.in)
					h.turns()
					if tt.before != nil {
						tt.before(h, in)
					}
					sender := h.start("caller", 1)
					h.serveFor(10 * time.Minute)
					if tt.then != nil {
						tt.then(h, in)
					}
					h.serveFor(2 * time.Hour)
					h.wantOutput(sender, fmt.Sprintf("%q", tt.want))
				})
			}
		})
	}
}

// The wake of the start is lost. The update runs the first turn, which ends the instance.
func TestR31_updateRunsTheOnlyTurn_callerReceivesTheEnd(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		intercept, _ := crashOnce(false, func(c simaws.Call) bool {
			return crash && sendsKind(c, provider.MessageUpdateAnswered)
		})
		o := simhub.Options{Registry: addHold(registry()), Intercept: intercept}
		inBubble(t, o, func(ctx context.Context, h *hub) {
			h.startAs("c", "nothing", 0)
			wakes := h.receive(h.Provider.Config().InboxURL)
			if err := h.Provider.DeleteRecords(ctx, provider.QueueInbox, wakes...); err != nil {
				t.Fatal(err)
			}
			sender := h.start("caller", 1)
			h.serveFor(time.Hour)
			h.wantOutput(sender, fmt.Sprintf("%q", history.TypeEnded))
		})
	}
}

// The caller receives the reason if a validator rejects the update, or if there is no handler.
func TestR31_updateIsRejected_callerReceivesTheReason(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: addHold(registry())}, func(_ context.Context, h *hub) {
		h.startAs("c", "holds", holdInput{})
		h.turns()
		sender := h.start("caller", -1)
		h.serveFor(time.Minute)
		h.wantOutput(sender, fmt.Sprintf("%q", history.TypeUpdateRejected+history.RejectedByValidator))
	})
	inBubble(t, simhub.Options{Registry: addHold(registry())}, func(_ context.Context, h *hub) {
		h.startAs("c", "timer", time.Hour)
		h.turns()
		sender := h.start("caller", 1)
		h.serveFor(time.Minute)
		h.wantOutput(sender, fmt.Sprintf("%q", history.TypeUpdateRejected+history.RejectedNoHandler))
	})
}

// twice resends each message to the inbox with another deduplication ID.
func (h *hub) twice() {
	h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL ||
			strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
			return next()
		}
		err := next()
		twice := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
		for i := range twice.Entries {
			id := "again" + aws.ToString(twice.Entries[i].MessageDeduplicationId)
			twice.Entries[i].MessageDeduplicationId = &id
		}
		_, sent := h.Cloud.Queues.SendMessageBatch(ctx, twice)
		return errors.Join(err, sent)
	})
}

// Each message arrives twice. Each update is accepted once, and one instance starts.
func TestR31_everyMessageTwice_acceptsEachUpdateOnce(t *testing.T) {
	t.Parallel()
	for _, in := range []calling{
		{To: "c", Calls: 4, tallying: tallying{Left: 4}},
		{To: "c", Calls: 4, tallying: tallying{Left: 4, Continues: true, Slow: true}},
	} {
		inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
			h.twice()
			caller := h.start("calls", in)
			if end := h.finish(caller); string(end.Output) != `"[[0] [0 1] [0 1 2] [0 1 2 3]]"` {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.wantOutput(h.read(provider.Instance{InstanceID: "c"}), "[0,1,2,3]")
			h.wantInstances(2)
			h.checkIdle()
		})
	}
}

// Each call of a function fails or loses its response, in one run each. Each update is accepted once, in order.
func TestR31_anyCallFails_updatesArriveInOrder(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n, made := int64(1), true; made; n++ {
			intercept, calls := simhub.FailAt(n, after)
			inBubble(t, simhub.Options{Intercept: intercept}, func(_ context.Context, h *hub) {
				in := h.start("calls", calling{To: "c", Calls: 3, tallying: tallying{Left: 3, Continues: true}})
				if end := h.finish(in); string(end.Output) != `"[[0] [0 1] [0 1 2]]"` {
					t.Errorf("call %d failed: ended with %s %s", n, end.String(), end.Output)
				}
				h.checkIdle()
			})
			made = calls.Load() >= n
		}
	}
}

// sentUpdate returns an update of the entity "sum" with key "k", in the form in which an execution sends it.
func sentUpdate(executionID string, eventID int64, at time.Time, n int) provider.Message {
	return provider.Message{
		Kind: provider.MessageUpdateSent, InstanceID: perdure.EntityInstanceID("sum", "k"), Name: "add",
		EventID: provider.StartID(executionID, eventID), Data: history.Payload(fmt.Sprint(n)), SentAt: &at,
		Parent:        &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID},
		Orchestration: perdure.EntityOrchestrationName("sum"), Input: history.Payload("null"),
	}
}

// wantSum fails the test unless the entity "sum" has the state want.
func (h *hub) wantSum(want string) {
	h.t.Helper()
	h.wantEntity("sum", want)
}

// wantEntity fails the test unless an entity with key k has the state want.
func (h *hub) wantEntity(name, want string) {
	h.t.Helper()
	got, err := h.Orchestrators[0].QueryInstance(h.t.Context(), provider.QueryRequest{
		InstanceID: perdure.EntityInstanceID(name, "k"), Name: perdure.EntityStateQuery,
	})
	if err != nil || string(got) != want {
		h.t.Errorf("got state %s, %v, want %s", got, err, want)
	}
}

// An entity has continued as new several times and no longer has the ID of an early update. A late copy of that update
// is dropped.
func TestR31_lateCopyOfAnUpdate_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		first := sentUpdate("px", 1, time.Now(), 1_000_000)
		h.send(first)
		h.turns()
		for n := range int64(1300) {
			h.send(sentUpdate("qx", n+1, time.Now(), 1))
			if n%10 == 9 {
				h.turns()
			}
		}
		h.turns()
		in := h.read(provider.Instance{InstanceID: first.InstanceID})
		if in.ExecutionNumber < 2 {
			t.Errorf("got execution %d, want at least 2", in.ExecutionNumber)
		}
		time.Sleep(6 * time.Minute)
		h.send(first)
		h.turns()
		h.wantSum(`{"Total":1001300,"Operations":1301}`)
	})
}
