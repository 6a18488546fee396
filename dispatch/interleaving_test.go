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

// acknowledge deletes what did not fail, as the mapping would.
func (h *hub) acknowledge(batch []provider.Record, failed []string) {
	h.t.Helper()
	for _, r := range batch {
		if !slices.Contains(failed, r.ID) {
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, r)
		}
	}
}

// contested lets environment 1 handle a batch, and a zombie with the same batch, in environment 0, overtake it just before it
// commits segment 2. The zombie dies at the first send of work that dies picks.
func (h *hub) contested(ctx context.Context, batch []provider.Record, dies func(*sqs.SendMessageBatchInput) bool) {
	h.t.Helper()
	zombie, done := false, false
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if send, ok := c.Input.(*sqs.SendMessageBatchInput); zombie && ok && *send.QueueUrl == "sim://default" && dies(send) {
			return errors.New("the zombie died between commit and dispatch")
		}
		if isCommit(c, "h#0000000002") && !done {
			zombie, done = true, true
			h.Orchestrators[0].HandleRecords(ctx, batch)
			zombie = false
		}
		return next()
	})
	failed := h.Orchestrators[1].HandleRecords(ctx, batch)
	h.interfere(nil)
	h.acknowledge(batch, failed)
}

// Interleaving: a zombie and a live session hold [m1 (covered), m2]. The live one redispatches for m1; the zombie commits the
// turn of m2 and dies before it sends; the live one's commit conflicts. Now m2 is covered too, and only a second redispatch
// sends what its turn decided.
func TestR4AConflictRedispatchesAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 2)
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo")) // dies before its records are deleted
		h.workItems()
		h.complete(in, 1, 3)
		time.Sleep(2 * time.Minute)
		batch := h.receive("sim://inbox.fifo") // the wake again, and the outcome
		h.contested(ctx, batch, func(send *sqs.SendMessageBatchInput) bool {
			return strings.Contains(*send.Entries[0].MessageBody, `"activityId":6`)
		})
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// Interleaving: an output is refused; before that is recorded, a zombie with the same wake records it, decides more, and dies
// before it sends. The live session's commit conflicts, and its failures no longer apply.
func TestR9ARefusedOutputThatAZombieRecordedIsRedispatched(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "fallback", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		nowhere := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere"))
		if _, err := nowhere.Call(ctx, 1).Await(ctx); err == nil {
			return 0, nil
		}
		return perdure.CallActivity(ctx, inc, n).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("fallback", 1)
		batch := h.receive("sim://inbox.fifo")
		h.contested(ctx, batch, func(*sqs.SendMessageBatchInput) bool { return true })
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// Outcomes that happen to come together, each of a legal size, can be more than a commit holds. The turn takes fewer of them;
// how messages were batched is no reason to fail an instance.
func TestR2ATurnThatIsTooLargeTakesFewerMessages(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fetch", func(context.Context, int) (string, error) { return "", nil })
	perdure.AddOrchestration(r, "fetch-all", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []perdure.Awaitable
		for i := range n {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "fetch", i))
		}
		return n, perdure.WhenAll(ctx, fs...)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		const n = 40
		in := h.start("fetch-all", n)
		h.turn(0)
		for id := int64(3); id < 3+n; id += 3 { // three of 170 KiB to a message, as a worker bundles them
			m := provider.Message{Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1}
			for k := id; k < min(id+3, 3+n); k++ {
				m.Outcomes = append(m.Outcomes, provider.ActivityOutcome{ActivityID: k, Attempt: 1, Result: encoded(t, static(k, 170<<10))})
			}
			if err := h.Provider.EnqueueForOrchestrator(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("failed %v", failed)
			}
		}
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s %v, %v", end.String(), end.Error, err)
		}
	})
}

// static is text that does not compress, another for each seed.
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
