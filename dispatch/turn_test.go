package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving: the renewer, the sweeper or a client commits outside the inbox, and two turns of an instance overlap.
// Only inbox messages may therefore cause segments after h#0.
func TestR1_timerAndSweep_commitNoSegment(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("timer", time.Minute)
		h.turn(0)
		before := len(h.made())
		time.Sleep(2 * time.Minute)
		timers := h.receive(h.Provider.Config().TimersURL)
		if failed := h.Renewer.HandleRecords(h.t.Context(), timers); len(timers) != 1 || len(failed) > 0 {
			t.Fatalf("got %d timers, failed records %v", len(timers), failed)
		}
		if _, err := h.Renewer.Sweep(h.t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range h.made()[before:] {
			put, ok := c.Input.(*dynamodb.PutItemInput)
			if ok && text(put.Item, "pk") != "hub" || strings.HasPrefix(c.Operation, "Update") ||
				strings.HasPrefix(c.Operation, "Transact") {
				t.Errorf("the timekeeper wrote to the table: %s", c.Operation)
			}
		}
		h.turn(0)
		if s, err := h.Provider.ReadInstance(h.t.Context(), in.InstanceID); err != nil ||
			s.Status != provider.StatusCompleted {
			t.Errorf("the inbox message caused no turn: got status %v, error %v", s.Status, err)
		}
	})
}

// SQS limits a message group ID to 128 ASCII characters. An instance ID has up to 1 KiB of UTF-8.
func TestR1_unusualInstanceIDs_areHashedToGroups(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"long": strings.Repeat("x", 1024), "unicode": "bestellung/ä#日本\u200d🜁", "spaces": " a b ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in, err := h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: id, Name: "chain", Input: history.Payload("2"), StartID: "s",
				})
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

// Interleaving: outcomes 1 and 2 are in one batch, and 1 ends the execution. If the turn also consumed 2, a message for
// the next execution would be lost (mutant batch_swallow).
func TestR2_messageEndsTheExecution_endsTheTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("first-of-two", 1)
		h.turn(0)
		h.complete(in, 1, 3)
		h.complete(in, 1, 4)
		records := h.receive(h.Provider.Config().InboxURL)
		if failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records); len(records) != 2 || len(failed) > 0 {
			t.Fatalf("got %d records, failed records %v", len(records), failed)
		}
		last := h.item("x#"+in.ExecutionID, "h#0000000002")
		if got := text(last, "wm"); got != records[0].Sequence {
			t.Errorf("last turn: got watermark %s, want %s of the message that ended it", got, records[0].Sequence)
		}
		for _, e := range h.events(in) {
			if e.Kind == history.ActivityCompleted && e.SourceEventID == 4 {
				t.Error("history contains the second outcome")
			}
		}
	})
}

// Interleaving: message 1 fails, and messages 2 and 3 of its group are acknowledged. Their order would be lost.
func TestR2_messageFails_laterMessagesOfItsGroupFail(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 3)
		h.turn(0)
		for id := int64(3); id <= 5; id++ {
			h.complete(in, 1, id)
		}
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" {
				return errors.New("refused")
			}
			return next()
		})
		records := h.receive(h.Provider.Config().InboxURL)
		failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records)
		h.interfere(nil)
		if want := []string{records[0].ID, records[1].ID, records[2].ID}; !slices.Equal(failed, want) {
			t.Errorf("got failed records %v, want %v", failed, want)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, want completed", end.String())
		}
	})
}

func TestR3_everySegment_hasAHeader(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		wake := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(h.t.Context(), wake)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		h.complete(in, 1, 3)
		outcome := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(h.t.Context(), outcome)
		for sk, wm := range map[string]string{
			"h#0000000000": "", "h#0000000001": wake[0].Sequence,
			"h#0000000002": outcome[0].Sequence,
		} {
			item := h.item("x#"+in.ExecutionID, sk)
			if text(item, "nonce") == "" || item["parts"] == nil || text(item, "wm") != wm {
				t.Errorf("%s: got nonce %q, parts %v, wm %q, want wm %q",
					sk, text(item, "nonce"), item["parts"], text(item, "wm"), wm)
			}
			if inbox := text(item, "inbox"); wm != "" && inbox != h.Provider.Config().InboxURL {
				t.Errorf("%s: got inbox %q", sk, inbox)
			}
		}
		if got := text(h.item("i#"+in.InstanceID, "i"), "wm"); got != outcome[0].Sequence {
			t.Errorf("ended instance: got wm %q, want %q", got, outcome[0].Sequence)
		}
	})
}

// Interleaving: the process crashes after a commit and before it sends anything. The segment contains the outputs.
// Without the redispatch, the outputs would never be sent (mutant no_redispatch).
func TestR4_redeliveredMessage_isDispatchedAgain(t *testing.T) {
	t.Parallel()
	crash, crashed := crashOnce(true, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
	inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, h *hub) {
		in := h.start("chain", 2)
		if end := h.finish(in); string(end.Output) != "2" || !crashed.Load() {
			t.Errorf("crashed=%v: ended with %s, want output 2", crashed.Load(), end.String())
		}
	})
}

// Interleaving: the trigger is redelivered after all its outputs are settled. If the outputs were resent, activities
// would run twice.
func TestR4_outputsAreSettled_areNotSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		wake := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(h.t.Context(), wake)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		first := h.workItems()
		h.complete(in, 1, 3)
		h.turn(0)
		if failed := h.Orchestrators[0].HandleRecords(h.t.Context(), wake); len(failed) > 0 {
			t.Fatalf("got failed records %v", failed)
		}
		again := h.workItems()
		if len(first) != 2 || len(again) != 1 || again[0].ActivityID != 4 {
			t.Errorf("got %d work items, then %v; want 2, then that of activity 4", len(first), again)
		}
	})
}

// An outcome with a later sequence number that is already settled is a repeated outcome, not a redelivered trigger.
func TestR4_repeatedOutcome_dispatchesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		h.turn(0)
		h.workItems()
		h.complete(in, 1, 3)
		h.turn(0)
		time.Sleep(6 * time.Minute) // beyond the deduplication interval of SQS
		h.complete(in, 1, 3)
		before := len(h.events(in))
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) > 0 || len(h.events(in)) != before {
			t.Errorf("got failed records %v, %d events, want %d", failed, len(h.events(in)), before)
		}
	})
}

// Interleaving: the code ends in its first turn, and the process crashes before it writes the status. The turn must
// count the trigger as consumed. Otherwise, its redelivery is dropped, and the instance stays Pending.
func TestR4_processDiesAfterFirstTurnEnds_statusIsWritten(t *testing.T) {
	t.Parallel()
	crash, crashed := crashOnce(false, func(c simaws.Call) bool { return c.Operation == "UpdateItem" })
	inBubble(t, simhub.Options{Intercept: crash}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 7)
		h.finish(in)
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || s.Status != provider.StatusCompleted ||
			!crashed.Load() {
			t.Errorf("crashed=%v: got status %v, error %v, want Completed", crashed.Load(), s.Status, err)
		}
	})
}

// Interleaving:
//  1. Environment 0 has cached the instance at segment 1, and environment 1 commits segment 2.
//  2. An outcome of an activity of segment 2 arrives at environment 0, whose cache does not contain the activity. If
//     environment 0 dropped the outcome, the instance would stall (mutant warm_drop).
func TestR5_staleCache_readsBeforeItDropsAMessage(t *testing.T) {
	t.Parallel()
	for name, segment := range map[string]int64{"message names its segment": 2, "message without segment": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
				in := h.start("chain", 2)
				h.turn(0)
				h.complete(in, 1, 3)
				h.turn(1)
				h.complete(in, segment, 6)
				if failed := h.turn(0); len(failed) > 0 {
					t.Fatalf("got failed records %v", failed)
				}
				events := h.events(in)
				if last := events[len(events)-1]; last.Kind != history.OrchestrationCompleted {
					t.Errorf("the outcome was dropped: history ends with %s", last.String())
				}
			})
		})
	}
}

// A parent cancels a child whose ID had an earlier incarnation. An environment has cached the earlier incarnation, and
// must read before it responds.
func TestR5_cancelOfTheNextIncarnationReachesStaleCache_isApplied(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		begin := func(startID string) provider.Instance {
			s := provider.Start{InstanceID: "c", Name: "sums", Input: encoded(t, 0), StartID: startID}
			return must(h.Provider.StartOrchestration(ctx, s))
		}
		begin("first")
		h.turn(0)
		h.purge("c")
		in := begin("second")
		h.turn(1)
		h.send(provider.Message{
			Kind: provider.MessageCancel, InstanceID: "c", StartID: in.StartID, Reason: "parent_cancelled",
			Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 3},
		})
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("got failed records %v", failed)
		}
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.OrchestrationCancelled {
			t.Errorf("the cancel had no effect: history ends with %s", last.String())
		}
	})
}

// A message that was sent after the end of the cached history must cause a read, not a turn whose commit fails.
func TestR5_messageIsAheadOfTheCache_headIsReadFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("fan", 3)
		h.turn(0)
		h.complete(in, 1, 3)
		h.turn(1)
		before := len(h.made())
		h.complete(in, 2, 4)
		h.turn(0)
		puts := 0
		for _, op := range h.operations(before) {
			if op == "PutItem" {
				puts++
			}
		}
		if puts != 1 {
			t.Errorf("got %d commits, want 1: %v", puts, h.operations(before))
		}
	})
}

// Interleaving: the commit fails after the coroutine has continued, and SQS redelivers the message together with
// another. If the session reused the coroutine, the coroutine would count the first message as settled, and the session
// would commit a turn without that message.
func TestR6_commitIsNotConfirmed_coroutineIsDiscarded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		h.turn(0)
		h.complete(in, 1, 3)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" {
				return errors.New("refused")
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("got failed records %v, want the outcome", failed)
		}
		h.interfere(nil)
		h.complete(in, 1, 4)
		time.Sleep(5 * time.Second)
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("got failed records %v", failed)
		}
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.OrchestrationCompleted {
			t.Errorf("history ends with %s", last.String())
		}
	})
}

// A record must never be acknowledged before all outputs of its turn are sent (mutant ack_first).
func TestR9_sendFails_recordIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, send := c.Input.(*sqs.SendMessageBatchInput); send {
				return errors.New("refused")
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("got failed records %v, want the wake", failed)
		}
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
	})
}
