package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

var sumInstance = provider.Instance{InstanceID: perdure.EntityInstanceID("sum", "k")}

// callsSum returns an orchestration that calls operations of the entity in sequence, and returns their results.
func callsSum(operations ...any) func(*perdure.OrchestrationContext, int) (string, error) {
	return func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		var all []string
		for i := 0; i < len(operations); i += 2 {
			v, err := perdure.CallEntity[int](ctx, "sum", "k", operations[i].(string), operations[i+1]).Await(ctx)
			if e, failed := errors.AsType[*perdure.CallUpdateError](err); failed {
				all = append(all, e.Type+e.RejectReason)
			} else if err != nil {
				return "", err
			} else {
				all = append(all, fmt.Sprint(v))
			}
		}
		return strings.Join(all, " "), nil
	}
}

// registryWithSum returns the registry with callsSum as the orchestration "on-sum".
func registryWithSum(operations ...any) *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "on-sum", callsSum(operations...))
	return r
}

// An operation that fails or panics does not change the state. After an operation deletes the state, the next operation
// starts without state.
func TestR31_operationFails_stateIsUnchanged(t *testing.T) {
	t.Parallel()
	failing := registryWithSum("add", 2, "add", -1, "add", 3, "add", 13, "nothing", 1, "add", "text")
	inBubble(t, simhub.Options{Registry: failing}, func(_ context.Context, h *hub) {
		in := h.start("on-sum", 1)
		h.serveFor(time.Minute)
		h.wantOutput(in, `"2 update_failed 5 update_failed update_rejectedunknown_update update_rejectedbad_input"`)
		h.wantSum(`{"Total":5,"Operations":2}`)
	})
	inBubble(t, simhub.Options{Registry: registryWithSum("add", 2, "close", 0, "add", 3)},
		func(_ context.Context, h *hub) {
			in := h.start("on-sum", 1)
			h.serveFor(time.Minute)
			h.wantOutput(in, `"2 2 3"`)
			h.wantSum(`{"Total":3,"Operations":1}`)
		})
}

// Several calls have the same ID. The later calls join the first, even if it has ended, and the operation runs once.
func TestR31_callsHaveTheSameID_runOnce(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "joins", func(ctx *perdure.OrchestrationContext, operation string) (int, error) {
		var fs []*perdure.Future[int]
		for range 3 {
			fs = append(fs, perdure.CallEntity[int](ctx, "sum", "k", operation, 4, perdure.WithUpdateID("same")))
		}
		return sumOf(ctx, fs)
	})
	for _, operation := range []string{"add", "add-slowly"} {
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			h.startAs(sumInstance.InstanceID, perdure.EntityOrchestrationName("sum"), nil)
			h.turns()
			in := h.start("joins", operation)
			h.serveFor(time.Minute)
			h.wantOutput(in, "12")
			h.wantSum(`{"Total":4,"Operations":1}`)
			again := h.startAs("i-2", "joins", operation) // the first call has ended
			h.serveFor(time.Minute)
			h.wantOutput(again, "12")
			h.wantSum(`{"Total":4,"Operations":1}`)
		})
	}
}

// Several orchestrations concurrently call a key that does not exist. One entity starts, and no call is lost, despite a
// crash at any call.
func TestR31_concurrentFirstCallsAndCrashAtAnyCall_startOneEntity(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n, made := int64(1), true; made; n++ {
			intercept, calls := simhub.CrashAt(n, after)
			o := simhub.Options{
				Registry: registryWithSum("add-slowly", 5, "add", 1), Environments: 2, Intercept: intercept,
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				for i := range 3 {
					h.startAs(fmt.Sprint("caller-", i), "on-sum", 1)
				}
				h.serveFor(2 * time.Hour)
				h.wantInstances(4)
				h.wantSum(`{"Total":18,"Operations":6}`)
				h.wantEmpty()
			})
			made = calls.Load() >= n
		}
	}
}

// Waiting operations of a key run in sequence, even across executions of the entity. No operation is lost, and no two
// run concurrently.
func TestR31_operationsOfAKey_runInSequence(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "many", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			if i == 800 { // at most a thousand may wait
				if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
					return 0, err
				}
			}
			operation := "add"
			if i%100 == 99 {
				operation = "add-slowly"
			}
			fs = append(fs, perdure.CallEntity[int](ctx, "sum", "k", operation, 1))
		}
		for i, f := range fs {
			if v, err := f.Await(ctx); err != nil || v != i+1 {
				return i, fmt.Errorf("operation %d: %d, %w", i, v, err)
			}
		}
		return n, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("many", 1500)
		h.serveFor(24 * time.Hour)
		h.wantOutput(in, "1500")
		h.wantSum(`{"Total":1500,"Operations":1500}`)
		if n := h.read(sumInstance).ExecutionNumber; n != 2 {
			t.Errorf("got execution %d, want 2", n)
		}
		h.wantEmpty()
	})
}

// Inputs, results and states of operations count towards the size of an execution, because a query replays all of them.
// Waiting operations move to the next execution, regardless of their size.
func TestR31_largeOperationInputs_countForTheSizeOfAnExecution(t *testing.T) {
	t.Parallel()
	const operations, bytes = 50, 150_000
	for name, o := range map[string]simhub.Options{"warm": {}, "cold": {CacheBytes: -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Registry = registry()
			note := func(ctx *perdure.OrchestrationContext, noted *[]string, text string) (int, error) {
				if _, err := perdure.CallActivity(ctx, inc, 1).Await(ctx); err != nil {
					return 0, err
				}
				*noted = append(*noted, describeText(text))
				return len(*noted), nil
			}
			perdure.AddEntity(o.Registry, "notes", perdure.Operation("note", note))
			perdure.AddOrchestration(o.Registry, "notes-much",
				func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
					var fs []*perdure.Future[int]
					for _, text := range textsOf(operations, bytes) {
						fs = append(fs, perdure.CallEntity[int](ctx, "notes", "k", "note", text))
					}
					last := 0
					for _, f := range fs {
						var err error
						if last, err = f.Await(ctx); err != nil {
							return 0, err
						}
					}
					return last, nil
				})
			want := make([]string, operations)
			for i, text := range textsOf(operations, bytes) {
				want[i] = describeText(text)
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				in := h.start("notes-much", 1)
				h.serveFor(time.Hour)
				h.wantOutput(in, fmt.Sprint(operations))
				notes := provider.Instance{InstanceID: perdure.EntityInstanceID("notes", "k")}
				if n := h.read(notes).ExecutionNumber; n != 2 { // 7.5 MB; an execution has up to 4 MB
					t.Errorf("got execution %d, want 2", n)
				}
				h.wantEntity("notes", `["`+strings.Join(want, `","`)+`"]`)
				h.wantEmpty()
			})
		})
	}
}

// A call after a purge starts a new entity, even if the call arrives during the deletion.
func TestR31_callAfterAPurge_startsAnEntity(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: registryWithSum("add", 2)}, func(ctx context.Context, h *hub) {
		h.start("on-sum", 1)
		h.serveFor(time.Minute)
		h.purge(sumInstance.InstanceID)
		h.startAs("i-2", "on-sum", 1)
		h.serveFor(time.Minute)
		h.wantSum(`{"Total":2,"Operations":1}`)

		h.failDeletion(sumInstance.InstanceID, func(c simaws.Call) bool {
			return c.Operation == "BatchWriteItem" || c.Operation == "DeleteItem" || c.Operation == "PutItem"
		})
		in := h.startAs("i-3", "on-sum", 1)
		h.serveFor(time.Minute)
		h.interfere(nil)
		for range 10 {
			h.watch()
			h.serveFor(5 * time.Minute)
		}
		h.wantOutput(in, `"2"`)
		h.wantSum(`{"Total":2,"Operations":1}`)
	})
}

// A copy of a call that arrives after the purge of the entity starts no entity. A call that was sent after the purge
// starts one.
func TestR31_copyOfACallAfterAPurge_startsNoEntity(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		first, second := sentUpdate("px", 1, time.Now(), 1), sentUpdate("qx", 1, time.Now(), 2)
		h.send(first, second)
		h.turns()
		h.wantSum(`{"Total":3,"Operations":2}`)
		h.purge(sumInstance.InstanceID)
		time.Sleep(6 * time.Minute)
		h.send(first, second)
		h.serveFor(time.Minute)
		h.wantNone(sumInstance.InstanceID)
		h.send(sentUpdate("qx", 2, time.Now(), 4))
		h.serveFor(time.Minute)
		h.wantSum(`{"Total":4,"Operations":1}`)
	})
}

// 1. An entity processes a call and is purged.
// 2. Another call starts a new entity.
// 3. A copy of the first call arrives. The new entity does not process it, and the caller receives update_purged.
func TestR31_copyAfterAPurge_nextEntityDropsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		first, second := sentUpdate("px", 1, time.Now(), 1), sentUpdate("qx", 1, time.Now(), 2)
		h.send(first)
		h.turns()
		time.Sleep(6 * time.Minute)
		h.purge(sumInstance.InstanceID)
		time.Sleep(6 * time.Minute)
		h.send(sentUpdate("rx", 1, time.Now(), 4))
		h.turns()
		h.send(first)
		h.turns()
		h.wantSum(`{"Total":4,"Operations":1}`)
		sent := h.messagesTo("px")
		last := len(sent) - 1
		if last < 1 || sent[last].Error == nil || sent[last].Error.Type != history.TypeUpdatePurged {
			t.Errorf("got responses %+v to the copy, want update_purged as the last", sent)
		}
		late := sentUpdate("rx", 2, time.Now(), 8) // sent to this incarnation, so it is processed although it is late
		time.Sleep(11 * time.Minute)
		h.send(late, second)
		h.turns()
		h.wantSum(`{"Total":12,"Operations":2}`)
	})
	inBubble(t, simhub.Options{},
		func(_ context.Context, h *hub) { // without an earlier incarnation, late calls are processed
			late := sentUpdate("px", 1, time.Now(), 1)
			h.send(sentUpdate("qx", 1, time.Now(), 2))
			time.Sleep(6 * time.Minute)
			h.turns()
			h.send(late)
			h.turns()
			h.wantSum(`{"Total":3,"Operations":2}`)
		})
}

// messagesTo returns the responses that were sent to an execution.
func (h *hub) messagesTo(executionID string) (messages []provider.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok {
			continue
		}
		for i := range in.Entries {
			m, err := wire.DecodeMessage(*in.Entries[i].MessageBody)
			if err == nil && m.Kind == provider.MessageUpdateAnswered && m.ExecutionID == executionID {
				messages = append(messages, m)
			}
		}
	}
	return messages
}

// An update starts an instance of an orchestration that is in no build yet. The instance and the update wait for that
// build.
func TestR31_updateStartsAnUnknownOrchestration_waitsForItsBuild(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "starts-unknown", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallUpdate[int](ctx, "u", "hold", 1, perdure.WithStart("later", holdInput{})).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("starts-unknown", 1)
		h.serveFor(time.Hour)
		h.wantStatus(provider.Instance{InstanceID: "u"}, provider.StatusBlocked)
		known := registry()
		perdure.AddOrchestration(known, "starts-unknown", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallUpdate[int](ctx, "u", "hold", 1, perdure.WithStart("later", holdInput{})).Await(ctx)
		})
		perdure.AddOrchestration(known, "later", func(ctx *perdure.OrchestrationContext, _ holdInput) (int, error) {
			add := func(_ *perdure.OrchestrationContext, n int) (int, error) { return n + 6, nil }
			if err := perdure.SetUpdateHandler(ctx, "hold", add); err != nil {
				return 0, err
			}
			return 0, perdure.Sleep(ctx, time.Hour)
		})
		if err := h.Deploy(ctx, known, "b2"); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			h.watch()
			h.serveFor(10 * time.Minute)
		}
		h.wantOutput(in, "7")
	})
}

// A cancelled entity ends after its running operation, and accepts no call until it is purged.
func TestR31_entityIsCancelled_rejectsFurtherCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: registryWithSum("add", 2)}, func(_ context.Context, h *hub) {
		h.start("on-sum", 1)
		h.serveFor(time.Minute)
		h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: sumInstance.InstanceID, Reason: "requested"})
		h.serveFor(time.Minute)
		h.wantStatus(sumInstance, provider.StatusCancelled)
		in := h.startAs("i-2", "on-sum", 1)
		h.serveFor(time.Minute)
		h.wantOutput(in, fmt.Sprintf("%q", history.TypeEnded))
	})
}

// The entity processes a call even if the caller ends in the same turn, cancels the call, or continues as new.
func TestR31_callerEnds_callIsProcessed(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*perdure.OrchestrationContext, int) (int, error){
		"ends":  func(*perdure.OrchestrationContext, int) (int, error) { return 1, nil },
		"fails": func(*perdure.OrchestrationContext, int) (int, error) { return 1, errors.New("it failed") },
		"continue": func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if n > 0 {
				return perdure.ContinueAsNew[int](ctx, 0)
			}
			return 0, perdure.Sleep(ctx, time.Minute)
		},
		"gives up": func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			f := perdure.CallEntity[int](ctx, "sum", "k", "add-slowly", 4)
			f.Cancel("no matter")
			_, err := f.Await(ctx)
			return 0, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			perdure.AddOrchestration(r, "leaves", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
				if n > 0 {
					perdure.CallEntity[int](ctx, "sum", "k", "add-slowly", 3)
				}
				return ends(ctx, n)
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				h.start("leaves", 1)
				h.serveFor(time.Hour)
				want := `{"Total":3,"Operations":1}`
				if name == "gives up" {
					want = `{"Total":7,"Operations":2}`
				}
				h.wantSum(want)
				h.wantEmpty()
			})
		})
	}
}

// A turn calls ten thousand keys, and each call starts an entity.
func TestR31_turnCallsTenThousandKeys_allStart(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	const keys = 10_000
	r := registry()
	perdure.AddOrchestration(r, "calls-keys", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		fs := make([]*perdure.Future[int], n)
		for i := range fs {
			fs[i] = perdure.CallEntity[int](ctx, "sum", fmt.Sprint(i), "add", 1)
		}
		return sumOf(ctx, fs)
	})
	inBubble(t, simhub.Options{Registry: r, InvocationLimit: 30 * time.Second}, func(_ context.Context, h *hub) {
		in := h.start("calls-keys", keys)
		h.serveFor(24 * time.Hour)
		h.wantOutput(in, fmt.Sprint(keys))
		h.wantEmpty()
	})
}
