package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// acknowledge deletes the records that did not fail, like the event source mapping.
func (h *hub) acknowledge(batch []provider.Record, failed []string) {
	h.t.Helper()
	for _, r := range batch {
		if !slices.Contains(failed, r.ID) {
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
		}
	}
}

// conflictWith lets environment 1 process a batch. Just before environment 1 commits segment 2, environment 0 processes
// the same batch and commits first. Environment 0 crashes at the first send of work items for which dies returns true.
func (h *hub) conflictWith(ctx context.Context, batch []provider.Record, dies func(*sqs.SendMessageBatchInput) bool) {
	h.t.Helper()
	stale, done := false, false
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if send, ok := c.Input.(*sqs.SendMessageBatchInput); stale && ok && *send.QueueUrl == "sim://default" &&
			dies(send) {
			return errors.New("the process crashed between commit and dispatch")
		}
		if isCommit(c, "h#0000000002") && !done {
			stale, done = true, true
			h.Orchestrators[0].HandleRecords(ctx, batch)
			stale = false
		}
		return next()
	})
	failed := h.Orchestrators[1].HandleRecords(ctx, batch)
	h.interfere(nil)
	h.acknowledge(batch, failed)
}

// 1. Two sessions have the messages [m1, m2]. An earlier turn consumed m1. The first session redispatches for m1.
// 2. The second session commits the turn of m2 and crashes before it sends the outputs.
// 3. The commit of the first session conflicts. Now m2 also counts as a redelivery.
// 4. The first session redispatches again, which sends the outputs of the turn of m2.
func TestR4_commitConflicts_redispatchesAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 2)
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo")) // crashes before it deletes the records
		h.workItems()
		h.complete(in, 1, 3)
		time.Sleep(2 * time.Minute)
		batch := h.receive("sim://inbox.fifo") // the redelivered wake, and the outcome
		h.conflictWith(ctx, batch, func(send *sqs.SendMessageBatchInput) bool {
			return strings.Contains(*send.Entries[0].MessageBody, `"activityId":6`)
		})
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

//  1. SQS rejects an output of a session.
//  2. Before the session records that, another session with the same wake records it, decides more, commits, and
//     crashes before it sends.
//  3. The commit of the first session conflicts. Its list of rejected outputs no longer applies, so it redispatches.
func TestR9_anotherSessionRecordsRejectedOutput_isRedispatched(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "fallback", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		missingQueue := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere"))
		if _, err := missingQueue.Call(ctx, 1).Await(ctx); err == nil {
			return 0, nil
		}
		return perdure.CallActivity(ctx, inc, n).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("fallback", 1)
		batch := h.receive("sim://inbox.fifo")
		h.conflictWith(ctx, batch, func(*sqs.SendMessageBatchInput) bool { return true })
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// Outcomes that arrive together may exceed a commit although each has a legal size. The turn consumes fewer of them.
// The instance does not fail, because batching of messages is arbitrary.
func TestR2_turnExceedsACommit_consumesFewerMessages(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: fetchAllRegistry()}, func(ctx context.Context, h *hub) {
		const n = 40
		in := h.start("fetch-all", n)
		h.turn(0)
		h.sendLargeOutcomes(in, n)
		for range 4 {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("got failed records %v, want none", failed)
			}
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s %v, %v", end.String(), end.Error, err)
		}
	})
}

// fetchAllRegistry has an orchestration that waits for n activities at once.
func fetchAllRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fetch", func(context.Context, int) (string, error) { return "", nil })
	perdure.AddOrchestration(r, "fetch-all", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []perdure.Awaitable
		for i := range n {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "fetch", i))
		}
		return n, perdure.WhenAll(ctx, fs...)
	})
	return r
}

// sendLargeOutcomes sends outcomes of the first n activities of an instance. Each message has three outcomes of 170
// KiB, as a worker combines them. A batch of ten messages exceeds a commit.
func (h *hub) sendLargeOutcomes(in provider.Instance, n int64) {
	h.t.Helper()
	for id := int64(3); id < 3+n; id += 3 {
		m := provider.Message{
			Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
			Segment: 1,
		}
		for k := id; k < min(id+3, 3+n); k++ {
			m.Outcomes = append(m.Outcomes, provider.ActivityOutcome{
				ActivityID: k, Attempt: 1, Result: encoded(h.t, static(k, 170<<10)),
			})
		}
		h.send(m)
	}
}

// Outcomes of a paused instance that exceed a commit together are parked in several segments. Otherwise they would
// become dead letters, and no resume after them would be received.
func TestR25_outcomesExceedACommit_areParkedInParts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: fetchAllRegistry()}, func(ctx context.Context, h *hub) {
		const n = 40
		in := h.start("fetch-all", n)
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		h.sendLargeOutcomes(in, n)
		for range 4 {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("got failed records %v, want none", failed)
			}
		}
		h.wantPaused(in)
		h.resume(in, "r1")
		for range 4 {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("after the resume: got failed records %v, want none", failed)
			}
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s %v, %v", end.String(), end.Error, err)
		}
	})
}

// static returns text that does not compress. Each seed has a different text.
func static(seed int64, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	b, x := make([]byte, n), uint64(seed)*0x9E3779B97F4A7C15+1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = letters[x%64]
	}
	return string(b)
}
