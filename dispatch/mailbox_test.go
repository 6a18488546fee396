package dispatch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// countRaised counts the external events in a history.
func countRaised(events []history.Event) (n int) {
	for i := range events {
		if events[i].Kind == history.ExternalEventRaised {
			n++
		}
	}
	return n
}

// turns runs the orchestrator on all batches in the inbox until it is empty.
func (h *hub) turns() {
	h.t.Helper()
	for {
		records := h.receive(h.Provider.Config().InboxURL)
		if len(records) == 0 {
			return
		}
		failed := h.Orchestrators[0].HandleRecords(h.t.Context(), records)
		if len(failed) > 0 {
			h.t.Fatalf("got %d failed messages, want 0", len(failed))
		}
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, records...)
	}
}

// Each message is sent twice with different deduplication IDs, like after the five minutes in which SQS deduplicates.
func TestR24_messageSentTwice_isOneEvent(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				in, ok := c.Input.(*sqs.SendMessageBatchInput)
				if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL ||
					strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
					return next()
				}
				err := next()
				twice := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
				for i := range twice.Entries {
					twice.Entries[i].MessageDeduplicationId = aws.String("again" +
						aws.ToString(twice.Entries[i].MessageDeduplicationId))
				}
				if _, sent := h.Cloud.Queues.SendMessageBatch(ctx, twice); sent != nil {
					t.Error(sent)
				}
				return err
			})
			in := h.start("exchange", sendInput{Events: 5, Continues: anew})
			if end := h.finish(in); string(end.Output) != `"5 delivered; received [0 1 2 3 4]"` {
				t.Errorf("ended with %s, output %s", end.String(), end.Output)
			}
			h.checkIdle()
		})
	}
}

// Any call fails, or its response is lost. Events between two instances still arrive in order.
func TestR24_anyCallFails_eventsArriveInOrder(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n, made := int64(1), true; made; n++ {
			intercept, calls := simhub.FailAt(n, after)
			inBubble(t, simhub.Options{Intercept: intercept}, func(_ context.Context, h *hub) {
				in := h.start("exchange", sendInput{Events: 4, Continues: true})
				if end := h.finish(in); string(end.Output) != `"4 delivered; received [0 1 2 3]"` {
					t.Errorf("call %d fails: ended with %s, output %s", n, end.String(), end.Output)
				}
				h.checkIdle()
			})
			made = calls.Load() >= n
		}
	}
}

// Messages that the inbox accepted before another call failed are recorded, and no later redispatch resends them.
func TestR24_sendFailsAfterSomeEvents_acceptedEventsAreNotSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.startAs("c", "receiver", receiveInput{Left: 2})
		h.turns()
		sent, failed := 0, false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if !sendsKind(c, provider.MessageEventSent) {
				return next()
			}
			if sent++; sent == 2 && !failed {
				failed = true
				return simhub.ErrFailed
			}
			return next()
		})
		in := h.start("sender", sendInput{To: "c", Events: 2})
		if left := h.turn(0); len(left) != 1 {
			t.Fatalf("got %d failed messages, want the wake", len(left))
		}
		time.Sleep(10 * time.Minute) // SQS no longer stores the deduplication ID of the first event
		h.serveFor(time.Hour)
		h.wantOutput(in, `"2 delivered"`)
		if sent != 3 {
			t.Errorf("got %d sends, want one of the first event and two of the second", sent)
		}
	})
}

// SQS may accept a batch partially, in any order. No batch has two messages for one instance.
func TestR24_batch_hasOneMessagePerInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("exchange", sendInput{Events: 25})
		h.finish(in)
		sent := 0
		for _, c := range h.made() {
			batch, ok := c.Input.(*sqs.SendMessageBatchInput)
			if !ok {
				continue
			}
			groups := map[string]bool{}
			for _, e := range batch.Entries {
				group := aws.ToString(e.MessageGroupId)
				if group != "" && groups[group] {
					t.Errorf("a batch of %d has two messages of one group", len(batch.Entries))
					return
				}
				groups[group] = true
				if strings.Contains(aws.ToString(e.MessageBody), `"kind":"eventSent"`) {
					sent++
				}
			}
		}
		if sent != 25 {
			t.Errorf("got %d events sent, want 25", sent)
		}
	})
}

// Interleaving: the process crashes after it has responded that the receiver does not exist, and before it deletes the
// message. Then a client starts the receiver. The event must not arrive, because the sender has received a failure.
func TestR24_eventReportedUndelivered_neverArrives(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(h *hub, m provider.Message, kept []provider.Record){
		"message is redelivered": func(*hub, provider.Message, []provider.Record) { time.Sleep(2 * time.Minute) },
		"copy arrives": func(h *hub, m provider.Message, kept []provider.Record) {
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, kept...)
			time.Sleep(6 * time.Minute)
			h.send(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				sender := h.start("sender", sendInput{To: "c", Events: 1})
				h.turn(0)
				records := h.receive(h.Provider.Config().InboxURL)
				items, _ := h.Provider.DecodeOrchestrationItems(records)
				if failed := h.Orchestrators[0].HandleRecords(t.Context(), records); len(failed) > 0 {
					t.Fatal("got failed records, want none")
				}
				receiver := h.startAs("c", "receiver", receiveInput{Left: 1})
				again(h, items[0].Messages[0].Message, records)

				h.serveFor(time.Hour)
				h.wantOutput(sender, `"1 absent"`)
				if n := countRaised(h.events(receiver)); n != 0 {
					t.Error("receiver has an event that was reported as undelivered")
				}
			})
		})
	}
}

// Interleaving: a process finds no receiver, and freezes before it records the refusal. The receiver starts in between,
// and receives the event.
func TestR24_receiverStartsBeforeTheRefusalIsRecorded_receivesTheEvent(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turn(0)
		started := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" && !started {
				started = true
				h.startAs("c", "receiver", receiveInput{Left: 1})
			}
			return next()
		})
		h.turns()
		h.serveFor(time.Hour)
		h.wantOutput(sender, `"1 delivered"`)
		h.wantOutput(h.read(provider.Instance{InstanceID: "c"}), "[0]")
	})
}

// Interleaving: a start was prepared an hour ago. It is committed after an event for its ID was refused, and before
// that message is deleted. According to its start time, the instance existed when the event was sent.
func TestR24_startCommittedAfterRefusal_eventNeverArrives(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		late := must(h.Provider.PrepareStart(ctx, provider.Start{
			InstanceID: "c", Name: "receiver", Input: encoded(t, receiveInput{Left: 1}), StartID: "late",
		}))
		time.Sleep(time.Hour)
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turn(0)
		if failed := h.Orchestrators[0].HandleRecords(ctx, h.receive(h.Provider.Config().InboxURL)); len(failed) > 0 {
			t.Fatal("got failed records, want none")
		}
		if _, err := h.Cloud.Table.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: dynamo.TransactItems(late)}); err != nil {
			t.Fatal(err)
		}
		if err := late.Wake(ctx); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour) // SQS redelivers the message
		h.wantOutput(sender, `"1 absent"`)
		if n := countRaised(h.events(h.read(provider.Instance{InstanceID: "c"}))); n != 0 {
			t.Error("receiver has an event that was reported as undelivered")
		}
	})
}

// An ended instance is purged, and its ID is used again. An event that was refused for the first incarnation does not
// arrive at the second.
func TestR24_eventForEndedIncarnation_doesNotReachTheNext(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		first := h.startAs("c", "nothing", 1)
		h.turns()
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turn(0)
		records := h.receive(h.Provider.Config().InboxURL)
		if failed := h.Orchestrators[0].HandleRecords(ctx, records); len(failed) > 0 {
			t.Fatal("got failed records, want none")
		}
		if err := h.Provider.DeleteInstance(ctx, first.InstanceID, false); err != nil {
			t.Fatal(err)
		}
		second := must(h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "c", Name: "receiver", Input: encoded(t, receiveInput{Left: 1}), StartID: "second",
		}))
		h.serveFor(time.Hour) // SQS redelivers the message
		h.wantOutput(sender, `"1 over"`)
		if n := countRaised(h.events(second)); n != 0 {
			t.Error("receiver has an event that was reported as undelivered")
		}
	})
}

// A receiver that is purged before its events arrive counts as absent.
func TestR24_receiverIsPurged_eventIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startAs("c", "receiver", receiveInput{Left: 9})
		h.turns()
		sender := h.start("sender", sendInput{To: "c", Events: 2})
		h.turn(0)
		if err := h.Provider.DeleteInstance(ctx, "c", true); err != nil {
			t.Fatal(err)
		}
		h.turns()
		h.wantOutput(sender, `"2 absent"`)
	})
}

// Interleaving: the event is the first message of an instance whose code ends without waiting. The turn consumes the
// event as its trigger, no code receives it, and the process crashes before it responds to the sender.
func TestR24_eventTriggersTurnThatEnds_senderReceivesAResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ orchestration, want string }{
		"over":              {"nothing", `"1 over"`},
		"continues as new":  {"continues-then-receives", `"1 delivered"`},
		"too large to take": {"ends-too-large", `"1 over"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intercept, _ := crashOnce(false, func(c simaws.Call) bool {
				return sendsKind(c, provider.MessageEventAnswered)
			})
			r := registry()
			perdure.AddOrchestration(r, "continues-then-receives", func(
				ctx *perdure.OrchestrationContext, n int,
			) ([]int, error) {
				if n == 1 {
					return perdure.ContinueAsNew[[]int](ctx, 2)
				}
				return receivesEvents(ctx, receiveInput{Left: 1})
			})
			perdure.AddOrchestration(r, "ends-too-large", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				for range 40 {
					perdure.SideEffect(ctx, func() []byte {
						noise := make([]byte, 120<<10)
						_, _ = rand.Read(noise)
						return noise
					})
				}
				return 0, perdure.Sleep(ctx, time.Hour)
			})
			inBubble(t, simhub.Options{Registry: r, Intercept: intercept}, func(_ context.Context, h *hub) {
				sender := h.start("sender", sendInput{To: "c", Events: 1})
				h.turn(0)
				h.startAs("c", tt.orchestration, 1) // its wake follows the event
				h.serveFor(time.Hour)
				h.wantOutput(sender, tt.want)
				h.events(h.read(provider.Instance{InstanceID: "c"}))
			})
		})
	}
}

// sendsKind reports whether a call sends a message of a kind.
func sendsKind(c simaws.Call, kind provider.MessageKind) bool {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	return ok && slices.ContainsFunc(in.Entries, func(e sqstypes.SendMessageBatchRequestEntry) bool {
		return strings.Contains(aws.ToString(e.MessageBody), fmt.Sprintf(`"kind":%q`, kind))
	})
}

// A blocked instance parks the event for the fixed build. The event counts as delivered, and the sender continues.
func TestR24_receiverIsBlocked_eventIsDelivered(t *testing.T) {
	t.Parallel()
	waits := sleeper(1, "add")
	inBubble(t, simhub.Options{Registry: waits}, func(ctx context.Context, h *hub) {
		receiver := h.startAs("c", "sleeper", 0)
		h.turns()
		broken := sleeper(1, "other")
		addEventOrchestrations(broken)
		if err := h.Deploy(ctx, broken, "b2"); err != nil {
			t.Fatal(err)
		}
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.serveFor(time.Hour)
		h.wantOutput(sender, `"1 delivered"`)
		if s := h.read(receiver).Status; s != provider.StatusBlocked {
			t.Errorf("receiver: got status %s, want Blocked", s)
		}
		if err := h.Deploy(ctx, waits, "b3"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		h.wantOutput(receiver, "0")
	})
}

// A termination of a blocked instance follows the event in one batch. No code runs, and the event is refused.
func TestR24_blockedReceiverIsTerminated_eventIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add")}, func(ctx context.Context, h *hub) {
		receiver := h.startAs("c", "sleeper", 0)
		h.turns()
		broken := sleeper(1, "other")
		addEventOrchestrations(broken)
		if err := h.Deploy(ctx, broken, "b2"); err != nil {
			t.Fatal(err)
		}
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turn(0)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: receiver.InstanceID})
		h.serveFor(time.Hour)
		h.wantOutput(sender, `"1 over"`)
	})
}

// An event is sent even if its sender ends in the same turn, is cancelled, or raised it in a cancelled scope.
func TestR24_senderEndsOrIsCancelled_eventIsSent(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "sends-in-a-scope", func(ctx *perdure.OrchestrationContext, to string) (string, error) {
		scope, leave := perdure.WithCancel(ctx)
		sent := perdure.RaiseEvent(scope, to, "add", 7)
		leave()
		_, given := sent.Await(ctx)
		_, late := perdure.RaiseEvent(scope, to, "add", 8).Await(ctx)
		return fmt.Sprint(given, "; ", late), nil
	})
	perdure.AddOrchestration(r, "sends-and-cancels",
		func(ctx *perdure.OrchestrationContext, to string) (string, error) {
			sent := perdure.RaiseEvent(ctx, to, "add", 7)
			sent.Cancel("no matter")
			_, err := sent.Await(ctx)
			return fmt.Sprint(err), perdure.Sleep(ctx, time.Hour)
		})
	perdure.AddOrchestration(r, "sends-and-fails", func(ctx *perdure.OrchestrationContext, to string) (string, error) {
		perdure.RaiseEvent(ctx, to, "add", 7)
		return "", fmt.Errorf("failed")
	})
	for name, want := range map[string]string{
		"sends-in-a-scope":  `"cancelled (dropped_future); cancelled (dropped_future)"`,
		"sends-and-cancels": `"cancelled (requested): no matter"`,
		"sends-and-fails":   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				receiver := h.startAs("c", "receiver", receiveInput{Left: 1})
				h.turns()
				sender := h.start(name, "c")
				h.serveFor(24 * time.Hour)
				h.wantOutput(sender, want)
				h.wantOutput(receiver, "[7]")
				h.checkIdle()
			})
		})
	}
}

// IDs may contain any characters, including characters that are escaped in paths.
func TestR24_unusualInstanceIDs_eventsArrive(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a b/ç~2:€", "~dGVzdA", strings.Repeat("x", 1024)} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			receiver := h.startAs(id, "receiver", receiveInput{Left: 2})
			h.turns()
			sender := h.start("sender", sendInput{To: id, Events: 2})
			h.turns()
			h.wantOutput(sender, `"2 delivered"`)
			h.wantOutput(receiver, "[0,1]")
		})
	}
}

// One turn raises ten thousand events in an instance, which receives them all in order.
func TestR24_tenThousandEventsOfOneTurn_arriveInOrder(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	const events = 10_000
	inBubble(t, simhub.Options{InvocationLimit: 30 * time.Second}, func(_ context.Context, h *hub) {
		receiver := h.startAs("c", "receiver", receiveInput{Left: events})
		h.turns()
		sender := h.start("sender", sendInput{To: "c", Events: events})
		h.serveFor(24 * time.Hour)
		h.wantOutput(sender, fmt.Sprintf("%q", fmt.Sprint(events, " delivered")))
		var want []string
		for n := range events {
			want = append(want, fmt.Sprint(n))
		}
		h.wantOutput(receiver, "["+strings.Join(want, ",")+"]")
	})
}

// A receiver that started long ago does not read rejected events, and a recent receiver reads them once.
func TestR24_event_costsNoReadForOldReceivers(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			h.startAs("c", "receiver", receiveInput{Left: 9})
			h.turns()
			if old {
				time.Sleep(time.Hour)
			}
			h.start("sender", sendInput{To: "c", Events: 3})
			h.turn(0)
			h.Cloud.ResetCounts()
			h.turn(0)
			want := int64(1)
			if old {
				want = 0
			}
			if got := h.Cloud.Counts(); got["DynamoDB.GetItem"] != want || got["DynamoDB.Query"] != 0 ||
				got["DynamoDB.PutItem"] != 1 {
				t.Errorf("got calls %v, want %d reads", got, want)
			}
		})
	}
}
