package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// isCommit: the call that creates the segment of that sort key.
func isCommit(c simaws.Call, sk string) bool {
	in, ok := c.Input.(*dynamodb.PutItemInput)
	return ok && text(in.Item, "sk") == sk
}

// Interleaving: the commit is applied, its response is lost, the same request goes out again and finds an item in its place:
// its own. Taken for a conflict it would cost a read; taken blindly for success it would hide a real conflict.
func TestR7ALostResponseIsSuccess(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		lost := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if isCommit(c, "h#0000000001") && lost == 0 {
				lost++
				return &ddbtypes.RequestLimitExceeded{Message: aws.String("the response was lost")}
			}
			return err
		})
		failed := h.turn(0)
		reads := 0
		for _, op := range h.operations(0) {
			if op == "Query" {
				reads++
			}
		}
		if len(failed) > 0 || lost != 1 || reads != 2 { // of the builds, at the start, and of the history
			t.Errorf("failed %v, %d responses lost, %d reads: %v", failed, lost, reads, h.operations(0))
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("%d work items, want 1", n)
		}
		h.events(in)
	})
}

// A plain PutItem can lose against a transaction, and be throttled: neither says that somebody has committed.
func TestR7AConflictWithATransactionIsTheSameRequestAgain(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"transaction conflict": &ddbtypes.TransactionConflictException{Message: aws.String("busy")},
		"throttled":            &ddbtypes.ProvisionedThroughputExceededException{Message: aws.String("slow down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.start("chain", 1)
				tries := 0
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if isCommit(c, "h#0000000001") {
						if tries++; tries < 4 {
							return refusal
						}
					}
					return next()
				})
				if failed := h.turn(0); len(failed) > 0 || tries != 4 {
					t.Errorf("failed %v after %d tries", failed, tries)
				}
			})
		})
	}
}

// Interleaving: two environments hold the same head and the same messages (one of them lost its lock and does not know).
// One segment gets in; the other must see that it is not its own, and read again (mutant conflict_is_success).
func TestR7AnybodyElsesSegmentIsAConflict(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		wake := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(h.t.Context(), wake)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		h.complete(in, 1, 3)
		first := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[1].HandleRecords(h.t.Context(), first) // environment 0 is still at segment 1
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, first...)
		h.complete(in, 1, 4)
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("failed %v", failed)
		}
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.OrchestrationCompleted || string(last.Output) != "2" {
			t.Errorf("history ends with %s %s", last.String(), last.Output)
		}
	})
}

// A segment over 350 KB lies in several items. The first part has the key that every other turn would use, or two turns
// of one sequence both get in (mutant split_key).
func TestR7TheFirstPartOfALargeSegmentHasTheSegmentsKey(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "swallow", func(_ context.Context, s string) (int, error) { return len(s), nil })
	perdure.AddOrchestration(r, "large", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []perdure.Awaitable
		for range n {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "swallow", noise(ctx, 150<<10)))
		}
		return len(fs), perdure.WhenAll(ctx, fs...)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("large", 8)
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("failed %v", failed)
		}
		first, second := h.item("x#"+in.ExecutionID, "h#0000000001"), h.item("x#"+in.ExecutionID, "h#0000000001#001")
		if first == nil || second == nil || text(second, "nonce") != "" {
			t.Errorf("parts: %v, %v", first != nil, second != nil)
		}
		if end := h.finish(in); string(end.Output) != "8" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// noise is text that does not compress, the same in every replay.
func noise(ctx *perdure.OrchestrationContext, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	var b strings.Builder
	for range n {
		b.WriteByte(letters[ctx.Rand().IntN(len(letters))])
	}
	return b.String()
}

// Interleaving: the id was purged and started anew, and a turn of the old execution projects its status at last. The instance
// is another one by then.
func TestR7TheInstanceIsWrittenOnlyWhileItsExecutionIsMine(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 1)
		_, err := h.Cloud.Table.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("perdure"), UpdateExpression: aws.String("SET #e = :other"), ExpressionAttributeNames: map[string]string{"#e": "execution"},
			Key:                       map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "i#i-1"}, "sk": &ddbtypes.AttributeValueMemberS{Value: "i"}},
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":other": &ddbtypes.AttributeValueMemberS{Value: "another"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("failed %v", failed)
		}
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || s.Status != provider.StatusPending {
			t.Errorf("status %v, %v: written over another execution's", s.Status, err)
		}
	})
}

// An output that can never be sent fails its future, in history, and the orchestration goes on.
func TestR9APermanentErrorIsRecordedAsTheOutputsFailure(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		end := h.finish(in)
		if !strings.Contains(string(end.Output), `work queue \"nowhere\"`) {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		failed := slices.IndexFunc(h.events(in), func(e history.Event) bool { return e.Kind == history.OutputFailed && e.SourceEventID == 3 })
		if failed < 0 {
			t.Error("no OutputFailed of #3 in history")
		}
	})
}

// Interleaving: the output is refused, and the process dies before the failure is recorded. The trigger must not be
// acknowledged before.
func TestR9ARefusedOutputSurvivesACrashBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	crash, crashed := crashOnce(false, func(c simaws.Call) bool { return isCommit(c, "h#0000000002") })
	inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || !crashed.Load() {
			t.Errorf("crashed: %v, ended with %s", crashed.Load(), end.String())
		}
	})
}

// Interleaving: the same as above without a crash, but the commit that records the failure is refused for good in this invocation.
func TestR9TheTriggerOfARefusedOutputIsNotAcknowledgedEarly(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.start("no-queue", 1)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000002") {
				return errors.New("refused")
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Errorf("failed %v, want the wake: what it caused is neither sent nor recorded as failed", failed)
		}
	})
}

// Interleaving: the status says Completed, the process dies, the id is started anew, and what was left to send is nobody's
// (hole i_last). So the status of an end is the last thing written.
func TestR9TheInstanceIsWrittenLastAtTheEnd(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "leaves-work", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		_, err := perdure.StartOrchestration(ctx, "nothing", n)
		return n, err
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		h.start("leaves-work", 1)
		var sent atomic.Int64
		early := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch c.Operation {
			case "SendMessageBatch":
				time.Sleep(time.Second)
				defer sent.Add(1)
			case "UpdateItem":
				early = sent.Load() < 1
			}
			return next()
		})
		if failed := h.turn(0); len(failed) > 0 || sent.Load() != 1 || early {
			t.Errorf("failed %v, %d sends; the status was written before everything was sent: %v", failed, sent.Load(), early)
		}
	})
}

// Interleaving: a turn is committed, and its sender falls asleep before it projects the custom status; the next turn projects
// its own; the sleeper wakes up. What it writes is of an earlier segment, and must not stand.
func TestR7ASlowSenderDoesNotUndoALaterStatus(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("statuses", 3)
		release := make(chan struct{})
		slow := true
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "UpdateItem" && slow {
				slow = false
				<-release
			}
			return next()
		})
		wake := h.receive("sim://inbox.fifo")
		over := make(chan []string)
		go func() { over <- h.Orchestrators[0].HandleRecords(ctx, wake) }()
		synctest.Wait() // committed, and asleep before the instance is written
		h.complete(in, 1, 4)
		time.Sleep(2 * time.Minute) // its lock is over
		batch := h.receive("sim://inbox.fifo")
		if failed := h.Orchestrators[1].HandleRecords(ctx, batch); len(failed) > 0 {
			t.Fatalf("failed %v", failed)
		}
		close(release)
		<-over
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || string(s.CustomStatus) != "2" || s.Status != provider.StatusRunning {
			t.Errorf("custom status %s, status %s, %v", s.CustomStatus, s.Status, err)
		}
	})
}
