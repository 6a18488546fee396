package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// loseMessages deletes all messages in the inbox and in the timers queue.
func (h *hub) loseMessages() (lost []provider.Record) {
	h.t.Helper()
	for _, queue := range []string{provider.QueueInbox, provider.QueueTimers} {
		url := map[string]string{
			provider.QueueInbox:  h.Provider.Config().InboxURL,
			provider.QueueTimers: h.Provider.Config().TimersURL,
		}[queue]
		for {
			records := h.receive(url)
			if len(records) == 0 {
				break
			}
			if err := h.Provider.DeleteRecords(h.t.Context(), queue, records...); err != nil {
				h.t.Fatal(err)
			}
			lost = append(lost, records...)
		}
	}
	return lost
}

// wantWoken runs a sweep, and fails the test unless it wakes want instances without error.
func (h *hub) wantWoken(want int, when string) {
	h.t.Helper()
	if woken, err := h.Renewer.Sweep(h.t.Context()); woken != want || err != nil {
		h.t.Errorf("%s: got %d wakes, want %d, error %v", when, woken, want, err)
	}
}

// The timer of a delayed start may be lost, for example as a dead letter. The sweeper wakes the instance when it is due
// and not before, even if it was started long ago.
func TestR11_timerOfADelayedStartIsLost_sweeperWakesItWhenDue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const delay = 30 * 24 * time.Hour
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "s", StartAt: time.Now().Add(delay),
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		if lost := h.loseMessages(); len(lost) != 1 {
			t.Fatalf("got %d lost messages, want the timer", len(lost))
		}
		h.wantWoken(0, "after a quarter of an hour")
		if now := h.read(in); !now.UpdatedAt.Equal(now.CreatedAt) {
			t.Errorf("got an update at %v, want none", now.UpdatedAt)
		}
		time.Sleep(delay - 20*time.Minute)
		h.wantWoken(0, "five minutes before the start time")
		time.Sleep(7*time.Minute + time.Second)
		h.wantWoken(1, "two minutes after")
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
	})
}

// Interleaving: two sweepers run concurrently, because EventBridge invokes the function twice. Each instance is woken
// once.
func TestSweep_twoAtOnce_wakeEachInstanceOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const many = 40
		for n := range many {
			h.startPending(ctx, fmt.Sprint("i-", n))
		}
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			time.Sleep(10 * time.Millisecond)
			return next()
		})
		// the sweeper finds it first after 3 minutes, and it is due again 4 minutes later
		for _, passes := range []time.Duration{3 * time.Minute, 4 * time.Minute} {
			time.Sleep(passes)
			var both sync.WaitGroup
			var woken [2]int
			for i := range woken {
				both.Go(func() {
					var err error
					if woken[i], err = h.Renewer.Sweep(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			if woken[0]+woken[1] != many {
				t.Errorf("got %d and %d wakes, want %d together", woken[0], woken[1], many)
			}
		}
	})
}

// Interleaving: the index by creation shows an instance after the sweeper has passed its position, or the clock of its
// starter is slow.
func TestR11_indexShowsInstanceLate_sweeperFindsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "late")
		shard := h.item("i#late", "i")["gs"]
		h.withoutShard(ctx, "late", nil)
		for n := range 200 { // some in each shard, so that the sweeper passes the position in all of them
			h.startPending(ctx, fmt.Sprint("i-", n))
		}
		time.Sleep(3 * time.Minute)
		h.wantWoken(200, "before the index has the instance")
		h.withoutShard(ctx, "late", shard)
		for range 40 {
			time.Sleep(2 * time.Minute)
			if _, err := h.Renewer.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range h.receiveAll("sim://inbox.fifo") {
			if strings.Contains(m.Body, `"late"`) {
				return
			}
		}
		t.Error("got no wake in 80 minutes")
	})
}

// withoutShard removes an instance from the index by creation, or adds it again.
func (h *hub) withoutShard(ctx context.Context, instanceID string, shard ddbtypes.AttributeValue) {
	h.t.Helper()
	it := h.item("i#"+instanceID, "i")
	delete(it, "gs")
	if shard != nil {
		it["gs"] = shard
	}
	if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("perdure"),
		Item:      it,
	}); err != nil {
		h.t.Fatal(err)
	}
}

// receiveAll receives all visible messages of a queue.
func (h *hub) receiveAll(url string) (all []provider.Record) {
	for {
		some := h.receive(url)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// A hub of an earlier release has one progress mark of the sweeper, and may have instances that this release never
// found.
func TestR11_sweeperPositionOfEarlierRelease_skipsNoInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "long-ago")
		time.Sleep(5 * 24 * time.Hour)
		h.startPending(ctx, "before-the-mark")
		time.Sleep(10 * time.Minute)
		mark := map[string]ddbtypes.AttributeValue{
			"pk": &ddbtypes.AttributeValueMemberS{Value: "hub"}, "sk": &ddbtypes.AttributeValueMemberS{Value: "watch"},
			"upTo": &ddbtypes.AttributeValueMemberS{Value: time.Now().UTC().Format("2006-01-02T15:04:05.000Z")},
		}
		if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String("perdure"),
			Item:      mark,
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		h.startPending(ctx, "since")
		time.Sleep(3 * time.Minute)
		h.wantWoken(3, "first sweep of this release")
		h.wantWoken(0, "second sweep")
	})
}

// Later sweeps do not record or write an instance that had its first turn.
func TestSweep_healthyInstances_writesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("timer", 30*24*time.Hour)
		h.serveFor(10 * time.Minute)
		h.wantWoken(0, "first sweep")
		h.wantWoken(0, "second sweep")
		from := len(h.made())
		time.Sleep(2 * time.Minute)
		h.wantWoken(0, "third sweep")
		for _, c := range h.made()[from:] {
			switch c.Input.(type) {
			case *dynamodb.GetItemInput, *dynamodb.QueryInput, *sqs.ReceiveMessageInput, *sqs.GetQueueAttributesInput:
			default:
				t.Errorf("sweep calls %s, want only reads", c.Operation)
			}
		}
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("got status %s, want Running", now.Status)
		}
	})
}

// After a deployment, thousands of blocked instances are woken together. If their turns take an hour, sweeps do not
// send a wake for each of them repeatedly.
func TestR18_thousandsOfBlockedInstances_areNotWokenByEverySweep(t *testing.T) {
	t.Parallel()
	const many = 3000
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.putBlocked(ctx, many)
		var sends atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "SendMessageBatch" {
				sends.Add(1)
			}
			return next()
		})
		h.orchestrator(registry(), "fixed")
		sends.Store(0)
		h.wantWoken(many, "first sweep after the deployment")
		if sends.Load() > many/10+1 { // one more message requests a report from the orchestrator
			t.Errorf("got %d wakes in %d calls", many, sends.Load())
		}
		for range 4 {
			time.Sleep(2 * time.Minute)
			h.wantWoken(0, "while they wait for their turns")
		}
		total := 0
		for range 30 {
			time.Sleep(2 * time.Minute)
			woken, err := h.Renewer.Sweep(ctx)
			if err != nil {
				t.Fatal(err)
			}
			total += woken
		}
		if total != 2*many {
			t.Errorf("got %d wakes in the next hour, want two for each of %d: after 10 minutes, and after 30",
				total, many)
		}
		h.orchestrator(registry(), "another")
		h.wantWoken(many, "another build is deployed during the sweep")
	})
}

// putBlocked writes instances that are blocked in the build "bad".
func (h *hub) putBlocked(ctx context.Context, n int) {
	h.t.Helper()
	h.startPending(ctx, "i-0")
	it := h.item("i#i-0", "i")
	s := func(v string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: v} }
	it["status"], it["attention"], it["blockedBy"], it["diagnosis"] = s("Blocked"), s("blocked"), s("bad"),
		s(`{"type":"nondeterminism","message":"m"}`)
	for i := range n {
		it["pk"] = s(fmt.Sprint("i#i-", i))
		if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String("perdure"),
			Item:      it,
		}); err != nil {
			h.t.Fatal(err)
		}
	}
}
