package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// repairableRegistry returns an orchestration that sends and receives large payloads, has an open child and an
// unanswered event, and waits.
func repairableRegistry() *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "echo", func(_ context.Context, s string) (string, error) { return s, nil })
	perdure.AddOrchestration(r, "giving", func(ctx *perdure.OrchestrationContext, s string) (string, error) {
		return perdure.CallActivityByName[string](ctx, "echo", s).Await(ctx)
	})
	perdure.AddOrchestration(r, "listening", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "end").Await(ctx)
	})
	perdure.AddOrchestration(r, "repairable", func(ctx *perdure.OrchestrationContext, in string) ([]string, error) {
		noted := perdure.SideEffect(ctx, func() string { return largeText("s") })
		child := perdure.CallSubOrchestrationByName[string](ctx, "giving", largeText("c"))
		sent := perdure.RaiseEvent(ctx, "listener", "note", largeText("t"))
		a, err := perdure.CallActivityByName[string](ctx, "echo", largeText("a")).Await(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := sent.Await(ctx); err != nil {
			return nil, err
		}
		c, err := child.Await(ctx)
		if err != nil {
			return nil, err
		}
		e, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
		if err != nil {
			return nil, err
		}
		again, err := perdure.CallActivityByName[string](ctx, "echo", e).Await(ctx)
		if err != nil {
			return nil, err
		}
		_, err = perdure.WaitForExternalEvent[string](ctx, "end").Await(ctx)
		return []string{in, noted, a, c, again}, err
	})
	return r
}

const repairableMarks = "bsace"

// endRepairable runs i-1 to its last wait, and terminates it there.
func endRepairable(ctx context.Context, h *hub, c *client.Client) (past []history.Event) {
	h.t.Helper()
	_ = must(c.Start(ctx, "listening", 0, client.WithInstanceID("listener")))
	_ = must(c.Start(ctx, "repairable", largeText("b"), client.WithInstanceID("i-1")))
	if err := c.RaiseEvent(ctx, "i-1", "go", largeText("e")); err != nil {
		h.t.Fatal(err)
	}
	h.serveFor(time.Minute)
	if err := c.Terminate(ctx, "i-1", "enough"); err != nil {
		h.t.Fatal(err)
	}
	h.serveFor(time.Minute)
	return h.events(h.first(ctx))
}

// lastCut returns the last event from which a restart is possible.
func lastCut(past []history.Event) int64 {
	for i := range slices.Backward(past) {
		if history.CheckRestartPoint(past, past[i].ID) == nil {
			return past[i].ID
		}
	}
	return 0
}

// TestR28_restartFromAnEvent_ownsItsPayloads checks that all payloads that a restart copies or resends belong to the
// new execution. The old instance is purged before the first turn of the new one. The client that restarts it needs no
// codec.
func TestR28_restartFromAnEvent_ownsItsPayloads(t *testing.T) {
	t.Parallel()
	for name, codecs := range map[string][]perdure.Codec{"plain": nil, "encoded": {&turning{id: "turned"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cuts := 0
			for n, more := 0, true; more && !t.Failed(); n++ {
				inBubble(t, simhub.Options{
					Registry: repairableRegistry(), Bucket: true, CacheBytes: -1, Codecs: codecs,
				}, func(ctx context.Context, h *hub) {
					c := client.New(h.Provider, client.WithCodec(append(codecs, nil)[0]))
					past := endRepairable(ctx, h, c)
					past = slices.DeleteFunc(past, func(e history.Event) bool {
						return history.CheckRestartPoint(past, e.ID) != nil
					})
					if more = n < len(past); !more {
						return
					}
					cuts++
					again := h.restart("i-1", "again", past[n].ID)
					for _, e := range h.events(again) {
						b := must(json.Marshal(e))
						if strings.Contains(string(b), "0123456789abcdef0123456789abcdef0123456789abcdef") {
							t.Errorf("event %d is not encoded", e.ID)
						}
					}
					h.purgeBy(ctx, c, "i-1")
					h.deployWith(repairableRegistry(), "fresh", codecs) // with empty caches
					for _, event := range []string{"go", "end"} {
						if err := c.RaiseEvent(ctx, "again", event, largeText("e")); err != nil {
							t.Fatal(err)
						}
					}
					h.serveFor(time.Hour)
					s := must(c.Status(ctx, "again"))
					if got, err := client.Result[[]string](s); err != nil || marksOf(t, got...) != repairableMarks {
						t.Errorf("from event %d: got status %s, error %v", past[n].ID, s.Status, err)
					}
				})
			}
			if cuts < 5 {
				t.Errorf("got %d restart points, want at least 5", cuts)
			}
		})
	}
}

// TestR28_processDiesDuringARestart_sweepDeletesTheCopies checks a process that crashes between the copies and the
// start. A sweep deletes the copies. A repeated restart is complete, and a third restart adds no payload.
func TestR28_processDiesDuringARestart_sweepDeletesTheCopies(t *testing.T) {
	t.Parallel()
	dies := false
	o := simhub.Options{
		Registry: repairableRegistry(), Bucket: true, CacheBytes: -1,
		Intercept: func(_ context.Context, call simaws.Call, next func() error) error {
			if dies && call.Operation == "TransactWriteItems" {
				return &smithy.GenericAPIError{Code: "ValidationException", Message: "process died"}
			}
			return next()
		},
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		past := endRepairable(ctx, h, c)
		before := h.keys("x/")
		from := lastCut(past)
		dies = true
		if _, err := h.restarter().Restart(ctx, "i-1", client.FromEvent(from)); err == nil {
			t.Fatal("the restart did not fail")
		}
		dies = false
		if n := len(h.keys("x/")); n <= len(before) {
			t.Fatalf("got %d payloads, want more than %d", n, len(before))
		}
		time.Sleep(49 * time.Hour)
		h.sweep(ctx)
		if keys := h.keys("x/"); !slices.Equal(keys, before) {
			t.Errorf("the sweep left %v, want %v", keys, before)
		}

		id := must(h.restarter().Restart(ctx, "i-1", client.FromEvent(from)))
		once := h.keys("x/")
		time.Sleep(time.Second)
		if again := must(h.restarter().Restart(ctx, "i-1", client.FromEvent(from))); again != id ||
			!slices.Equal(h.keys("x/"), once) {
			t.Errorf("got %s, then %s; got %d payloads, then %d", id, again, len(once), len(h.keys("x/")))
		}
	})
}

// TestR28_payloadIsDeletedDuringARestart_restartFails checks a purge that deletes payloads while a restart copies them.
// The restart fails with the key, and starts nothing.
func TestR28_payloadIsDeletedDuringARestart_restartFails(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{
		Registry: repairableRegistry(), Bucket: true, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		past := endRepairable(ctx, h, c)
		old := h.first(ctx)
		if err := h.Provider.Payloads().DeletePayloads(ctx, past[0].Input.StorageKey()); err != nil {
			t.Fatal(err)
		}
		_, err := h.restarter().Restart(ctx, "i-1", client.FromEvent(lastCut(past)), client.WithInstanceID("again"))
		if e, ok := errors.AsType[*perdure.PayloadError](err); !ok || !errors.Is(err, perdure.ErrPayloadNotFound) ||
			!strings.Contains(e.Key, old.ExecutionID) {
			t.Errorf("got error %v, want PayloadError for a missing payload of the old execution", err)
		}
		if _, err := h.Provider.ReadInstance(ctx, "again"); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("got error %v, want ErrNotFound", err)
		}
	})
}

// TestR28_exportWithoutCodec_staysEncoded checks that a history that was exported without the codec contains no plain
// data, and that references to encoded payloads are found in it.
func TestR28_exportWithoutCodec_staysEncoded(t *testing.T) {
	t.Parallel()
	codec := &turning{id: "turned"}
	r := repairableRegistry()
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "listening", 0, client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "end", secret); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		in := h.first(ctx)
		events := h.events(in)
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ExternalEventRaised })
		place := history.DataLocation{ExecutionID: in.ExecutionID, EventID: events[i].ID}
		ref, _ := place.ReferTo(events[i].Data).Reference()
		doc := must(history.NewDocument("i-1", "listening", history.DocumentExecution{
			ExecutionID: in.ExecutionID, Number: 1, Events: events,
		}))
		if b := must(json.Marshal(doc)); strings.Contains(string(b), secret) {
			t.Error("document contains the secret")
		}
		found, err := doc.Find(ref)
		if err != nil || !history.Payload(found).IsEncoded() {
			t.Errorf("got %s, error %v, want an encoded payload", found, err)
		}
		doc.Executions[0].Events[i].Data = history.Payload(fmt.Sprintf("%q", secret)) // decoded by the exporter
		if found, err := doc.Find(ref); err != nil || string(found) != fmt.Sprintf("%q", secret) {
			t.Errorf("got %s, error %v, want the decoded payload", found, err)
		}
	})
}

// TestR28_exclusiveActivitiesWithLargeInputs_runOnce checks work items in the FIFO queue, which refer to their input.
// The worker reads the input of a repeated, resent or redriven item. While the bucket is unavailable, the activities of
// the key are released. Later, each activity runs once.
func TestR28_exclusiveActivitiesWithLargeInputs_runOnce(t *testing.T) {
	t.Parallel()
	for name, resend := range map[string]func(ctx context.Context, h *hub, r provider.Record) error{
		"resent": func(ctx context.Context, h *hub, r provider.Record) error {
			items, _ := h.Provider.DecodeWorkItems(ctx, []provider.Record{r})
			w := items[0].WorkItem
			w.ResendCount++
			return h.Provider.PutWorkItems(ctx, w)
		},
		"redriven":  redriven,
		"an outage": redriven,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			r := registry()
			perdure.AddActivity(r, "keyed", func(_ context.Context, s string) (string, error) {
				ran = append(ran, s[:1])
				return s, nil
			})
			perdure.AddOrchestration(r, "keys", func(
				ctx *perdure.OrchestrationContext, all []string,
			) ([]string, error) {
				fs := make([]*perdure.Future[string], len(all))
				for i, mark := range all {
					fs[i] = perdure.CallActivityByName[string](ctx, "keyed", largeText(mark), perdure.Exclusive("k"))
				}
				return perdure.AwaitAll(ctx, fs)
			})
			inBubble(t, simhub.Options{
				Registry: r, Bucket: true, Exclusive: true, CacheBytes: -1,
			}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider)
				_ = must(c.Start(ctx, "keys", []string{"a", "b", "c"}, client.WithInstanceID("i-1")))
				h.turn(0)
				records := h.receive(h.fifoURL())
				if len(records) == 0 {
					t.Fatal("got no work items")
				}
				if err := h.Provider.DeleteRecords(ctx, fifo, records...); err != nil {
					t.Fatal(err)
				}
				for i := range records {
					if n := len(records[i].Body); n > 4<<10 {
						t.Errorf("got a record of %d bytes, want at most 4 KiB", n)
					}
					if err := resend(ctx, h, records[i]); err != nil {
						t.Fatal(err)
					}
				}
				down := name == "an outage"
				h.interfere(func(_ context.Context, call simaws.Call, next func() error) error {
					if down && call.Operation == "GetObject" {
						return slowDown()
					}
					return next()
				})
				h.serveFor(time.Hour)
				if down && len(ran) > 0 {
					t.Errorf("ran %v without their inputs", ran)
				}
				wasDown := down
				down = false
				h.serveFor(3 * time.Hour)
				if wasDown { // long-delayed items are resent after the others
					slices.Sort(ran)
				}
				s := must(c.Status(ctx, "i-1"))
				if got, err := client.Result[[]string](s); err != nil || marksOf(t, got...) != "abc" ||
					fmt.Sprint(ran) != "[a b c]" {
					t.Errorf("got status %s, ran %v, error %v", s.Status, ran, err)
				}
			})
		})
	}
}

// TestR28_restartWithCarriedOverEvents_ownsTheirPayloads checks that carried-over events of an earlier execution, in
// the bucket or encoded in its history, belong to the new instance.
func TestR28_restartWithCarriedOverEvents_ownsTheirPayloads(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "carrying", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 0 {
			perdure.CreateTimer(ctx, time.Minute).Await(ctx)
			return perdure.ContinueAsNew[string](ctx, 1)
		}
		perdure.CreateTimer(ctx, time.Minute).Await(ctx)
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	codec := &turning{id: "turned"}
	for name, text := range map[string]string{
		"in the bucket":      largeText("e"),
		"encoded in history": strings.Repeat("e", 10<<10),
	} {
		inBubble(t, simhub.Options{
			Registry: r, Bucket: true, CacheBytes: -1, Codecs: []perdure.Codec{codec},
		}, func(ctx context.Context, h *hub) {
			c := client.New(h.Provider, client.WithCodec(codec))
			_ = must(c.Start(ctx, "carrying", 0, client.WithInstanceID("i-1")))
			h.raiseAndServe(ctx, c, text)
			h.serveFor(time.Hour)
			if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil || got != text {
				t.Fatalf("%s: got error %v", name, err)
			}
			past := h.events(h.first(ctx))
			h.restart("i-1", "again", lastCut(past))
			h.purgeBy(ctx, c, "i-1")
			h.deployWith(r, "fresh", []perdure.Codec{codec})
			h.serveFor(time.Hour)
			s := must(c.Status(ctx, "again"))
			if got, err := client.Result[string](s); err != nil || got != text {
				t.Errorf("%s: got status %s, error %v", name, s.Status, err)
			}
		})
	}
}

// TestR28_restartWithEncodedCarriedOverEvents_doesNotDecodeThem checks that a restart fetches encoded events that
// earlier executions carried over by reference, and does not decode them. The code of the new instance decodes them.
func TestR28_restartWithEncodedCarriedOverEvents_doesNotDecodeThem(t *testing.T) {
	t.Parallel()
	const many = 40
	r := registry()
	perdure.AddOrchestration(r, "hoarding", func(ctx *perdure.OrchestrationContext, n int) (all []string, err error) {
		perdure.CreateTimer(ctx, time.Minute).Await(ctx)
		if n == 0 {
			return perdure.ContinueAsNew[[]string](ctx, 1)
		}
		for range many {
			text, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, text[:4])
		}
		return all, nil
	})
	codec := &turning{id: "turned"}
	inBubble(t, simhub.Options{
		Registry: r, CacheBytes: -1, Codecs: []perdure.Codec{codec},
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(codec))
		_ = must(c.Start(ctx, "hoarding", 0, client.WithInstanceID("i-1")))
		want := make([]string, many)
		for i := range want {
			want[i] = fmt.Sprintf("%04d", i)
			if err := c.RaiseEvent(ctx, "i-1", "go", want[i]+strings.Repeat("e", 110<<10)); err != nil {
				t.Fatal(err)
			}
		}
		h.serveFor(time.Hour)
		if got, err := client.Result[[]string](must(c.Status(ctx, "i-1"))); err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, error %v", got, err)
		}
		h.restart("i-1", "again", 1)
		h.purgeBy(ctx, c, "i-1")
		h.serveFor(time.Hour)
		s := must(c.Status(ctx, "again"))
		if got, err := client.Result[[]string](s); err != nil || !slices.Equal(got, want) {
			t.Errorf("got status %s, output %v, error %v", s.Status, got, err)
		}
	})
}
