package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func TestR11_start_writesTheFirstSegmentBeforeTheInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		if want := []string{"x#" + in.ExecutionID + " h#0000000000", "i#i-1 i"}; !slices.Equal(h.putKeys(), want) {
			t.Errorf("got writes %q, want %q", h.putKeys(), want)
		}
	})
}

// putKeys returns the keys of all PutItem calls in order.
func (h *hub) putKeys() (keys []string) {
	for _, c := range h.made() {
		if put, ok := c.Input.(*dynamodb.PutItemInput); ok {
			keys = append(keys, text(put.Item, "pk")+" "+text(put.Item, "sk"))
		}
	}
	return keys
}

// Interleaving: the client crashes between its two writes. The instance does not exist, no code runs, and the ID is
// free for another or the same start, in the same millisecond or later.
func TestR11_clientDiesBetweenWrites_startsNothing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		startID string
		after   time.Duration
	}{
		"another start": {"key-2", time.Minute}, "another start at once": {"key-2", 0},
		"the same later": {"key-1", time.Minute}, "the same at once": {"key-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if createsInstance(c) {
						return simhub.ErrCrashed
					}
					return next()
				})
				first := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "key-1"}
				if _, err := h.Provider.StartOrchestration(ctx, first); err == nil {
					t.Fatal("the first start did not fail")
				}
				h.interfere(nil)
				if _, err := h.Provider.ReadInstance(ctx, "i-1"); !errors.Is(err, provider.ErrNotFound) {
					t.Errorf("got error %v, want ErrNotFound", err)
				}
				h.send(provider.Message{Kind: provider.MessageWake, InstanceID: "i-1"})
				if failed := h.turn(0); len(failed) > 0 {
					t.Errorf("got failed records %v", failed)
				}
				time.Sleep(s.after)
				next := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: s.startID}
				in, err := h.Provider.StartOrchestration(ctx, next)
				if err != nil {
					t.Fatal(err)
				}
				if end := h.finish(in); string(end.Output) != "2" {
					t.Errorf("ended with %s, want output 2", end.String())
				}
			})
		})
	}
}

// Interleaving: a client is frozen between its two writes. In between, the same start is repeated, or another start
// uses the ID, and the instance runs. The late write has no effect and leaves no item.
func TestR11_clientFrozenBetweenWrites_changesNothing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		startID string
		after   time.Duration
		want    error
		left    bool // the segment belongs to the instance
	}{
		"the same at once": {"key-1", 0, nil, true}, "the same later": {"key-1", time.Second, nil, false},
		"another": {"key-2", time.Second, provider.ErrAlreadyExists, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				frozen := false
				var in provider.Instance
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if createsInstance(c) && !frozen {
						frozen = true
						time.Sleep(s.after)
						in = must(h.Provider.StartOrchestration(ctx, provider.Start{
							InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: s.startID,
						}))
						if end := h.finish(in); string(end.Output) != "2" {
							t.Errorf("ended with %s, want output 2", end.String())
						}
					}
					return next()
				})
				late, err := h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "key-1",
				})
				if !errors.Is(err, s.want) || err == nil && late.ExecutionID != in.ExecutionID {
					t.Errorf("late start: got %+v, error %v", late, err)
				}
				h.interfere(nil)
				if now := h.read(in); now.Status != provider.StatusCompleted || string(h.events(now)[0].Input) != "2" {
					t.Errorf("got status %s, input %s", now.Status, h.events(now)[0].Input)
				}
				h.wantExpiringStub(strings.TrimSuffix(strings.TrimPrefix(h.putKeys()[0], "x#"), " h#0000000000"),
					!s.left)
			})
		})
	}
}

// A frozen client writes the start of an instance that has continued as new. The first execution is part of the history
// and must remain.
func TestR11_frozenClientAfterContinueAsNew_keepsFirstExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		frozen := false
		s := provider.Start{InstanceID: "i-1", Name: "again-at-once", Input: encoded(t, 2), StartID: "key-1"}
		var in provider.Instance
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if createsInstance(c) && !frozen {
				frozen = true
				in = must(h.Provider.StartOrchestration(ctx, s))
				h.finish(in)
			}
			return next()
		})
		if late := must(h.Provider.StartOrchestration(ctx, s)); late.ExecutionNumber != 3 {
			t.Errorf("late start: got execution %d, want 3", late.ExecutionNumber)
		}
		h.wantExpiringStub(in.ExecutionID, false)
	})
}

// wantExpiringStub fails the test unless the first segment of an execution is a stub with a TTL. If want is false, it
// must not be such a stub.
func (h *hub) wantExpiringStub(executionID string, want bool) {
	h.t.Helper()
	segment := h.item("x#"+executionID, "h#0000000000")
	_, ttl := segment["ttl"]
	_, stub := segment["stub"]
	if len(segment) == 0 || ttl != want || stub != want {
		h.t.Errorf("execution %s: got first segment %v", executionID, segment)
	}
}

// A start with a used ID leaves only a stub with a TTL.
func TestR11_startWithUsedID_leavesExpiringStub(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.start("chain", 1)
		for range 3 {
			if _, err := h.Provider.StartOrchestration(ctx, provider.Start{
				InstanceID: "i-1", Name: "chain",
				Input: encoded(t, 2), StartID: "key-2",
			}); !errors.Is(err, provider.ErrAlreadyExists) {
				t.Fatal(err)
			}
			put := h.putKeys()
			last := put[len(put)-1] // after the segment and the instance
			h.wantExpiringStub(strings.TrimSuffix(strings.TrimPrefix(last, "x#"), " h#0000000000"), true)
			time.Sleep(time.Second)
		}
	})
}

// Interleaving: the responses to both writes are lost. Each write is retried, and finds its own item.
func TestR11_responsesAreLost_startSucceeds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		lost := map[bool]bool{}
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if instance := createsInstance(c); c.Operation == "PutItem" && !lost[instance] {
				lost[instance] = true
				return &ddbtypes.RequestLimitExceeded{Message: aws.String("the response was lost")}
			}
			return err
		})
		in := h.start("chain", 1)
		h.interfere(nil)
		h.wantExpiringStub(in.ExecutionID, false)
		if end := h.finish(in); string(end.Output) != "1" || len(lost) != 2 {
			t.Errorf("ended with %s; lost responses: %v", end.String(), lost)
		}
	})
}

// A start that has stored payloads is one transaction. Otherwise, a sweep could attribute the payloads to an existing
// instance.
func TestR11_startWithStoredPayloads_isOneTransaction(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		s := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "key-1"}
		s.ExecutionID = provider.NewExecutionID(time.Now(), s.InstanceID, s.StartID)
		if in := must(h.Provider.StartOrchestration(ctx, s)); in.ExecutionID != s.ExecutionID {
			t.Errorf("got execution %s, want the prepared one", in.ExecutionID)
		}
		var wrote []string
		for _, c := range h.made() {
			if tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok {
				for _, w := range tx.TransactItems {
					wrote = append(wrote, text(w.Put.Item, "pk")+" "+text(w.Put.Item, "sk"))
				}
			}
		}
		if want := []string{"i#i-1 i", "x#" + s.ExecutionID + " h#0000000000"}; !slices.Equal(wrote, want) ||
			len(h.putKeys()) > 0 {
			t.Errorf("got writes %q in the transaction, and %q outside", wrote, h.putKeys())
		}
	})
}

// Interleaving: the client crashes, or its wake is lost, after the writes. The client repeats the start with the same
// key, which resends the wake.
func TestR11_repeatedStart_sendsTheWakeAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, send := c.Input.(*sqs.SendMessageBatchInput); send {
				return errors.New("the connection of the client is closed")
			}
			return next()
		})
		s := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "key-1"}
		if _, err := h.Provider.StartOrchestration(ctx, s); err == nil {
			t.Fatal("the lost wake caused no error")
		}
		h.interfere(nil)
		in, err := h.Provider.StartOrchestration(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
	})
}

func TestR11_anotherStartOfTheSameID_isRejected(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 1)
		again := provider.Start{InstanceID: in.InstanceID, Name: "nothing", Input: encoded(t, 2), StartID: "another"}
		if _, err := h.Provider.StartOrchestration(ctx, again); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Errorf("while it runs: got error %v, want ErrAlreadyExists", err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
		if _, err := h.Provider.StartOrchestration(ctx, again); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Errorf("after the end: got error %v, want ErrAlreadyExists", err)
		}
	})
}

// Interleaving: the wake is lost, and another message runs the first turn.
func TestR11_wakeIsLost_anyMessageRunsTheFirstTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		wake := h.receive(h.Provider.Config().InboxURL)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		h.complete(in, 0, 99) // an activity that was never scheduled
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Errorf("got failed records %v, or the code did not start", failed)
		}
	})
}

// Interleaving: the client does not return after its writes. After two minutes the sweeper finds the pending instance.
func TestR11_pendingInstance_sweeperWakesItAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		wake := h.receive(h.Provider.Config().InboxURL)
		_ = h.Provider.DeleteRecords(ctx, provider.QueueInbox, wake...)
		if woken, err := h.Renewer.Sweep(ctx); err != nil || woken != 0 {
			t.Errorf("at once: got %d wakes, error %v, want 0", woken, err)
		}
		time.Sleep(2*time.Minute + time.Second)
		if woken, err := h.Renewer.Sweep(ctx); err != nil || woken != 1 {
			t.Errorf("after two minutes: got %d wakes, error %v, want 1", woken, err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
		if woken, err := h.Renewer.Sweep(ctx); err != nil || woken != 0 {
			t.Errorf("after the end: got %d wakes, error %v, want 0", woken, err)
		}
	})
}
