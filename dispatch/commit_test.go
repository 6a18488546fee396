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

// isCommit reports whether a call creates the segment with the sort key sk.
func isCommit(c simaws.Call, sk string) bool {
	in, ok := c.Input.(*dynamodb.PutItemInput)
	return ok && text(in.Item, "sk") == sk
}

// 1. A commit succeeds, and its response is lost.
// 2. The provider repeats the request and finds its own item.
// A conflict here would cost a read. Success for every existing item would hide real conflicts.
func TestR7_responseToCommitIsLost_commitSucceeds(t *testing.T) {
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
		if len(failed) > 0 || lost != 1 || reads != 2 { // the builds at the start, and the history
			t.Errorf("got failed records %v, %d lost responses, %d reads: %v", failed, lost, reads, h.operations(0))
		}
		if n := len(h.workItems()); n != 1 {
			t.Errorf("got %d work items, want 1", n)
		}
		h.events(in)
	})
}

// A PutItem can conflict with a transaction or be throttled. Neither error means that another process has committed.
func TestR7_transactionConflict_requestIsRepeated(t *testing.T) {
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
					t.Errorf("got failed records %v after %d tries, want none after 4", failed, tries)
				}
			})
		})
	}
}

// Two environments have the same head and the same messages, because one has lost its lock without noticing. One
// segment is committed. The other environment recognizes that the segment is not its own and reads again (mutant
// conflict_is_success).
func TestR7_segmentOfAnotherSession_isAConflict(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("fan", 2)
		wake := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(h.t.Context(), wake)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		h.complete(in, 1, 3)
		first := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[1].HandleRecords(h.t.Context(), first) // environment 0 still has segment 1 in its cache
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, first...)
		h.complete(in, 1, 4)
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("got failed records %v, want none", failed)
		}
		events := h.events(in)
		if last := events[len(events)-1]; last.Kind != history.OrchestrationCompleted || string(last.Output) != "2" {
			t.Errorf("the history ends with %s %s, want the result 2", last.String(), last.Output)
		}
	})
}

// A segment over 350 KB has several items. The first part has the key of a segment without parts. Otherwise two turns
// with the same sequence number could both commit (mutant split_key).
func TestR7_largeSegment_firstPartHasTheSegmentsKey(t *testing.T) {
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
			t.Fatalf("got failed records %v, want none", failed)
		}
		first := h.item("x#"+in.ExecutionID, "h#0000000001")
		second := h.item("x#"+in.ExecutionID, "h#0000000001#001")
		if first == nil || second == nil || text(second, "nonce") != "" {
			t.Errorf("got first part: %v, second part: %v, want both and no nonce in the second",
				first != nil, second != nil)
		}
		if end := h.finish(in); string(end.Output) != "8" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// noise returns text that does not compress, the same in every replay.
func noise(ctx *perdure.OrchestrationContext, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	var b strings.Builder
	for range n {
		b.WriteByte(letters[ctx.Rand().IntN(len(letters))])
	}
	return b.String()
}

// An ID was purged and started again. A turn of the old execution writes its status afterwards, and must not overwrite
// the status of the new execution.
func TestR7_instanceHasAnotherExecution_statusIsNotWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 1)
		_, err := h.Cloud.Table.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("perdure"), UpdateExpression: aws.String("SET #e = :other"),
			ExpressionAttributeNames: map[string]string{"#e": "execution"},
			Key: map[string]ddbtypes.AttributeValue{
				"pk": &ddbtypes.AttributeValueMemberS{Value: "i#i-1"},
				"sk": &ddbtypes.AttributeValueMemberS{Value: "i"},
			},
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
				":other": &ddbtypes.AttributeValueMemberS{Value: "another"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatalf("got failed records %v, want none", failed)
		}
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || s.Status != provider.StatusPending {
			t.Errorf("got status %v, %v, want Pending as written by the other execution", s.Status, err)
		}
	})
}

// If SQS rejects an output permanently, history records the failure, its future fails, and the orchestration continues.
func TestR9_outputIsRejectedPermanently_failureIsRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		end := h.finish(in)
		if !strings.Contains(string(end.Output), `work queue \"nowhere\"`) {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		failed := slices.IndexFunc(h.events(in), func(e history.Event) bool {
			return e.Kind == history.OutputFailed && e.SourceEventID == 3
		})
		if failed < 0 {
			t.Error("history has no OutputFailed of #3")
		}
	})
}

// SQS rejects an output, and the process crashes before it records the failure. The trigger is not acknowledged before,
// so a redelivery records the failure.
func TestR9_crashBeforeARejectionIsRecorded_redeliveryRecordsIt(t *testing.T) {
	t.Parallel()
	crash, crashed := crashOnce(false, func(c simaws.Call) bool { return isCommit(c, "h#0000000002") })
	inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || !crashed.Load() {
			t.Errorf("crashed: %v, ended with %s, want a crash and a completion", crashed.Load(), end.String())
		}
	})
}

// SQS rejects an output, and the commit that records the failure fails. The trigger is not acknowledged.
func TestR9_failureIsNotRecorded_triggerIsNotAcknowledged(t *testing.T) {
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
			t.Errorf("got failed records %v, want the wake, because its output is neither sent nor recorded as failed",
				failed)
		}
	})
}

// If the status Completed were written first and the process crashed, another start could use the ID, and the remaining
// outputs would be lost. Dispatch therefore writes the status of an end last.
func TestR9_instanceEnds_statusIsWrittenLast(t *testing.T) {
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
			t.Errorf("got failed records %v, %d sends, status written before the sends: %v", failed, sent.Load(), early)
		}
	})
}

// 1. A session commits a turn and hangs before it writes the custom status.
// 2. The next turn writes its custom status.
// 3. The first session continues. Its status belongs to an earlier segment and is not written.
func TestR7_statusOfAnEarlierSegmentIsLate_isNotWritten(t *testing.T) {
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
		synctest.Wait() // committed, and hanging before the status is written
		h.complete(in, 1, 4)
		time.Sleep(2 * time.Minute) // its lock expires
		batch := h.receive("sim://inbox.fifo")
		if failed := h.Orchestrators[1].HandleRecords(ctx, batch); len(failed) > 0 {
			t.Fatalf("got failed records %v, want none", failed)
		}
		close(release)
		<-over
		s, err := h.Provider.ReadInstance(ctx, in.InstanceID)
		if err != nil || string(s.CustomStatus) != "2" || s.Status != provider.StatusRunning {
			t.Errorf("got custom status %s, status %s, %v, want 2, running", s.CustomStatus, s.Status, err)
		}
	})
}
