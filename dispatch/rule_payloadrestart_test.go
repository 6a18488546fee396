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

// repairable gives and takes large payloads, has a child under way and an event that is not answered, and waits.
func repairable() *perdure.Registry {
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
		told := perdure.RaiseEvent(ctx, "listener", "told", largeText("t"))
		a, err := perdure.CallActivityByName[string](ctx, "echo", largeText("a")).Await(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := told.Await(ctx); err != nil {
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

// endRepairable brings i-1 to its last wait, and terminates it there.
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

// lastCut is the last event from which a restart may begin.
func lastCut(past []history.Event) int64 {
	for i := range slices.Backward(past) {
		if history.CheckRestartPoint(past, past[i].ID) == nil {
			return past[i].ID
		}
	}
	return 0
}

// TestR28ARestartFromAnEventOwnsItsPayloads: whatever was taken over, sealed or in the bucket, is the new execution's own, and so is what it sends anew: the old
// instance is purged before the first turn of the new one. Who restarts it needs no codec.
func TestR28ARestartFromAnEventOwnsItsPayloads(t *testing.T) {
	t.Parallel()
	for name, codecs := range map[string][]perdure.Codec{"plain": nil, "sealed": {&turning{id: "turned"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cuts := 0
			for n, more := 0, true; more && !t.Failed(); n++ {
				inBubble(t, simhub.Options{Registry: repairable(), Bucket: true, CacheBytes: -1, Codecs: codecs}, func(ctx context.Context, h *hub) {
					c := client.New(h.Provider, client.WithCodec(append(codecs, nil)[0]))
					past := endRepairable(ctx, h, c)
					past = slices.DeleteFunc(past, func(e history.Event) bool { return history.CheckRestartPoint(past, e.ID) != nil })
					if more = n < len(past); !more {
						return
					}
					cuts++
					again := h.restart("i-1", "again", past[n].ID)
					for _, e := range h.events(again) {
						b := must(json.Marshal(e))
						if strings.Contains(string(b), "0123456789abcdef0123456789abcdef0123456789abcdef") {
							t.Errorf("event %d is not sealed", e.ID)
						}
					}
					h.purgeBy(ctx, c, "i-1")
					h.deployWith(repairable(), "fresh", codecs) // whose processes have nothing in memory
					for _, event := range []string{"go", "end"} {
						if err := c.RaiseEvent(ctx, "again", event, largeText("e")); err != nil {
							t.Fatal(err)
						}
					}
					h.serveFor(time.Hour)
					s := must(c.Status(ctx, "again"))
					if got, err := client.Result[[]string](s); err != nil || marksOf(t, got...) != repairableMarks {
						t.Errorf("from event %d: %s, %v", past[n].ID, s.Status, err)
					}
				})
			}
			if cuts < 5 {
				t.Errorf("%d cuts", cuts)
			}
		})
	}
}

// TestR28ARestartThatDiesLeavesOrphans: a process that dies between the copies and the start leaves what a sweep takes. Made again, the restart is whole; made
// twice, it leaves nothing.
func TestR28ARestartThatDiesLeavesOrphans(t *testing.T) {
	t.Parallel()
	dies := false
	o := simhub.Options{Registry: repairable(), Bucket: true, CacheBytes: -1, Intercept: func(_ context.Context, call simaws.Call, next func() error) error {
		if dies && call.Operation == "TransactWriteItems" {
			return &smithy.GenericAPIError{Code: "ValidationException", Message: "it died"}
		}
		return next()
	}}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		past := endRepairable(ctx, h, c)
		before := h.keys("x/")
		from := lastCut(past)
		dies = true
		if _, err := h.restarter().Restart(ctx, "i-1", client.FromEvent(from)); err == nil {
			t.Fatal("it did not die")
		}
		dies = false
		if n := len(h.keys("x/")); n <= len(before) {
			t.Fatalf("%d payloads, %d before", n, len(before))
		}
		time.Sleep(49 * time.Hour)
		h.sweep(ctx)
		if keys := h.keys("x/"); !slices.Equal(keys, before) {
			t.Errorf("the sweep left %v of %v", keys, before)
		}

		id := must(h.restarter().Restart(ctx, "i-1", client.FromEvent(from)))
		once := h.keys("x/")
		time.Sleep(time.Second)
		if again := must(h.restarter().Restart(ctx, "i-1", client.FromEvent(from))); again != id || !slices.Equal(h.keys("x/"), once) {
			t.Errorf("%s, then %s, of %d payloads and %d", id, again, len(once), len(h.keys("x/")))
		}
	})
}

// TestR28ARestartOfWhatIsGoneIsRefused: payloads that are deleted while they are copied, as by a purge, have the restart refused, with the key, and nothing is
// begun.
func TestR28ARestartOfWhatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: repairable(), Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		past := endRepairable(ctx, h, c)
		old := h.first(ctx)
		if err := h.Provider.Payloads().DeletePayloads(ctx, past[0].Input.StorageKey()); err != nil {
			t.Fatal(err)
		}
		_, err := h.restarter().Restart(ctx, "i-1", client.FromEvent(lastCut(past)), client.WithInstanceID("again"))
		if e, ok := errors.AsType[*perdure.PayloadError](err); !ok || !errors.Is(err, perdure.ErrPayloadNotFound) || !strings.Contains(e.Key, old.ExecutionID) {
			t.Errorf("%v", err)
		}
		if _, err := h.Provider.ReadInstance(ctx, "again"); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

// TestR28AnExportedHistoryStaysSealed: what is exported without the codec has nothing in the clear, and what refers to a sealed payload in it is found.
func TestR28AnExportedHistoryStaysSealed(t *testing.T) {
	t.Parallel()
	codec := &turning{id: "turned"}
	r := repairable()
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}, CacheBytes: -1}, func(ctx context.Context, h *hub) {
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
		doc := must(history.NewDocument("i-1", "listening", history.DocumentExecution{ExecutionID: in.ExecutionID, Number: 1, Events: events}))
		if b := must(json.Marshal(doc)); strings.Contains(string(b), secret) {
			t.Error("it has the secret")
		}
		found, err := doc.Find(ref)
		if err != nil || !history.Payload(found).IsEncoded() {
			t.Errorf("%s, %v", found, err)
		}
		doc.Executions[0].Events[i].Data = history.Payload(fmt.Sprintf("%q", secret)) // opened by who exported it
		if found, err := doc.Find(ref); err != nil || string(found) != fmt.Sprintf("%q", secret) {
			t.Errorf("%s, %v", found, err)
		}
	})
}

// TestR28LargeInputsOfExclusiveKeys: on the queue of keys a work item refers to its input. It is read whatever way the item comes: twice, sent anew, redriven; and
// where the bucket does not answer the key's activities go back, and run once it does, each once.
func TestR28LargeInputsOfExclusiveKeys(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(ctx context.Context, h *hub, r provider.Record) error{
		"sent anew": func(ctx context.Context, h *hub, r provider.Record) error {
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
			perdure.AddOrchestration(r, "keys", func(ctx *perdure.OrchestrationContext, all []string) ([]string, error) {
				fs := make([]*perdure.Future[string], len(all))
				for i, mark := range all {
					fs[i] = perdure.CallActivityByName[string](ctx, "keyed", largeText(mark), perdure.Exclusive("k"))
				}
				return perdure.AwaitAll(ctx, fs)
			})
			inBubble(t, simhub.Options{Registry: r, Bucket: true, Exclusive: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider)
				_ = must(c.Start(ctx, "keys", []string{"a", "b", "c"}, client.WithInstanceID("i-1")))
				h.turn(0)
				records := h.receive(h.fifoURL())
				if len(records) == 0 {
					t.Fatal("nothing was sent")
				}
				if err := h.Provider.DeleteRecords(ctx, fifo, records...); err != nil {
					t.Fatal(err)
				}
				for i := range records {
					if n := len(records[i].Body); n > 4<<10 {
						t.Errorf("a record of %d bytes", n)
					}
					if err := again(ctx, h, records[i]); err != nil {
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
				if wasDown { // what goes back for long is sent anew, behind the others
					slices.Sort(ran)
				}
				s := must(c.Status(ctx, "i-1"))
				if got, err := client.Result[[]string](s); err != nil || marksOf(t, got...) != "abc" || fmt.Sprint(ran) != "[a b c]" {
					t.Errorf("%s, ran %v, %v", s.Status, ran, err)
				}
			})
		})
	}
}

// TestR28ARestartOwnsWhatWasCarriedOver: what an earlier execution has handed on, in the bucket or sealed in its history, is the new instance's own.
func TestR28ARestartOwnsWhatWasCarriedOver(t *testing.T) {
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
	for name, text := range map[string]string{"in the bucket": largeText("e"), "sealed in history": strings.Repeat("e", 10<<10)} {
		inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
			c := client.New(h.Provider, client.WithCodec(codec))
			_ = must(c.Start(ctx, "carrying", 0, client.WithInstanceID("i-1")))
			h.raiseBy(ctx, c, text)
			h.serveFor(time.Hour)
			if got, err := client.Result[string](must(c.Status(ctx, "i-1"))); err != nil || got != text {
				t.Fatalf("%s: %v", name, err)
			}
			past := h.events(h.first(ctx))
			h.restart("i-1", "again", lastCut(past))
			h.purgeBy(ctx, c, "i-1")
			h.deployWith(r, "fresh", []perdure.Codec{codec})
			h.serveFor(time.Hour)
			s := must(c.Status(ctx, "again"))
			if got, err := client.Result[string](s); err != nil || got != text {
				t.Errorf("%s: %s, %v", name, s.Status, err)
			}
		})
	}
}

// TestR28ARestartFetchesWhatWasCarriedOverSealed: what earlier executions have handed on by reference, more than a history shows at once, is fetched sealed as
// it lies there, and opened by the new instance's code.
func TestR28ARestartFetchesWhatWasCarriedOverSealed(t *testing.T) {
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
	inBubble(t, simhub.Options{Registry: r, CacheBytes: -1, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
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
			t.Fatalf("%v, %v", got, err)
		}
		h.restart("i-1", "again", 1)
		h.purgeBy(ctx, c, "i-1")
		h.serveFor(time.Hour)
		s := must(c.Status(ctx, "again"))
		if got, err := client.Result[[]string](s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", s.Status, got, err)
		}
	})
}
