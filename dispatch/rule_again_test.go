package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// orders are orchestrations that charge a card, wait to be packed, and give the money back when they are cancelled.
type orders struct {
	mu     sync.Mutex
	charge map[string][]time.Time // by instance
	refund map[string]time.Time
}

func (o *orders) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(ctx context.Context, _ int) (int, error) {
		id := perdure.ActivityInfoFrom(ctx).InstanceID
		o.mu.Lock()
		defer o.mu.Unlock()
		o.charge[id] = append(o.charge[id], time.Now())
		return 1, nil
	})
	perdure.AddActivity(r, "refund", func(ctx context.Context, _ int) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.refund[perdure.ActivityInfoFrom(ctx).InstanceID] = time.Now()
		return 1, nil
	})
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.CallActivityByName[int](ctx, "charge", n).Await(ctx); err != nil {
			return 0, err
		}
		_, err := perdure.WaitForExternalEvent[int](ctx, "packed").Await(ctx)
		if err != nil {
			undo := perdure.WithoutCancel(ctx)
			if _, err := perdure.CallActivityByName[int](undo, "refund", n).Await(undo); err != nil {
				return 0, err
			}
		}
		return n, err
	})
	return r
}

// Each worker dies between telling that a card was charged and deleting the record. Moments to minutes later, when the record comes again,
// the order is cancelled and the money given back: no card is charged again.
func TestNoCancelledOrderIsChargedAfterItsRefund(t *testing.T) {
	t.Parallel()
	const n = 126
	for _, after := range []time.Duration{time.Second, 45 * time.Second} { // before the records come again, and in their midst
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			o := &orders{charge: map[string][]time.Time{}, refund: map[string]time.Time{}}
			var dying atomic.Bool
			dying.Store(true)
			crash := simhub.Crash(func(c simaws.Call) (bool, bool) {
				told, ok := c.Input.(*sqs.SendMessageBatchInput)
				return false, ok && dying.Load() && strings.Contains(*told.Entries[0].MessageBody, `"activityOutcomes"`)
			})
			inBubble(t, simhub.Options{Registry: o.registry(), Intercept: crash, WorkVisibility: 30 * time.Second}, func(_ context.Context, h *hub) {
				var all []provider.Instance
				for i := range n {
					all = append(all, h.startAs(fmt.Sprint("order-", i), "order", i))
				}
				h.serveFor(after)
				dying.Store(false)
				for _, in := range all {
					h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", RequestedBy: history.RequestedByClient})
				}
				h.serveFor(24 * time.Hour)
				again := 0
				for _, in := range all {
					again += len(o.charge[in.InstanceID]) - 1
					if refund, ok := o.refund[in.InstanceID]; !ok || len(o.charge[in.InstanceID]) != 1 || refund.Before(o.charge[in.InstanceID][0]) {
						t.Errorf("%s: charged %v, refunded %v", in.InstanceID, o.charge[in.InstanceID], refund)
					}
				}
				t.Logf("%d orders, charged again: %d", n, again)
				h.checkRest()
			})
		})
	}
}

// again is a record of the work item of an activity, as it comes when it was received before.
func again(t *testing.T, w provider.WorkItem, receives int) provider.Record {
	t.Helper()
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Record{ID: fmt.Sprint("again-", w.ActivityID, "-", w.Attempt, "-", receives), ReceiptHandle: "none", Body: string(body), ReceiveCount: receives}
}

// What is told in history is not done again, whatever brings the record again; what is open is.
func TestWhatComesAgainRunsOnlyWhileItIsOpen(t *testing.T) {
	t.Parallel()
	parked := history.Event{Kind: history.InputsParked, BuildID: "b", Error: &history.Failure{Type: "T"}, Inputs: []history.Event{{Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1}}}
	cases := map[string]struct {
		before func(tr *trial, in provider.Instance)
		item   func(w *provider.WorkItem)
		counts int
		runs   int
	}{
		"a second delivery of what is open":            {counts: 2, runs: 1},
		"a second delivery of what has ended":          {before: (*trial).settles, counts: 2},
		"the first one of what has ended":              {before: (*trial).settles, counts: 1, runs: 1}, // it costs no look
		"what was sent again and has ended":            {before: (*trial).settles, item: func(w *provider.WorkItem) { w.PossibleDuplicate = true }, counts: 1},
		"what was sent again and is open":              {item: func(w *provider.WorkItem) { w.PossibleDuplicate = true }, counts: 1, runs: 1},
		"a second delivery of what has ended, parked":  {before: func(tr *trial, in provider.Instance) { tr.commits(in, parked) }, counts: 2},
		"a second delivery of an attempt that is past": {before: (*trial).fails, counts: 2},
		"the current attempt":                          {before: (*trial).fails, item: func(w *provider.WorkItem) { w.Attempt = 2 }, counts: 1, runs: 1},
		"an attempt that is to come, of no chain":      {before: (*trial).fails, item: func(w *provider.WorkItem) { w.Attempt = 3 }, counts: 1},
		"a later attempt of what has ended":            {before: (*trial).settles, item: func(w *provider.WorkItem) { w.Attempt = 2 }, counts: 1},
		"an attempt that an earlier release has sent":  {item: func(w *provider.WorkItem) { w.Attempt = 4 }, counts: 1, runs: 1},
		"a second delivery for a deleted instance": {before: func(tr *trial, in provider.Instance) {
			if err := tr.Provider.DeleteInstance(tr.t.Context(), in.InstanceID, true); err != nil {
				tr.t.Error(err)
			}
		}, counts: 2},
		"a second delivery where history cannot be read": {before: func(tr *trial, in provider.Instance) {
			segment := tr.item("x#"+in.ExecutionID, "h#0000000001")
			tr.damage(segment)
		}, counts: 2, runs: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told(t, func(ctx context.Context, tr *trial, in provider.Instance, _ time.Time) {
				w := provider.WorkItem{
					V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Name: "try", Queue: "default", Attempt: 1,
					Input: encoded(t, stubbornness{SucceedsAt: 1}), Retry: &history.RetryPolicy{InitialIntervalMs: 1000},
				}
				if c.item != nil {
					c.item(&w)
				}
				if c.before != nil {
					c.before(tr, in)
				}
				before := len(tr.calls)
				failed := tr.worker(registryOf(tr)).HandleRecords(ctx, []provider.Record{again(t, w, c.counts)})
				if len(failed) > 0 || len(tr.ran()) != c.runs {
					t.Errorf("failed %v, ran %v, want %d", failed, tr.ran(), c.runs)
				}
				sends := 0
				for _, op := range tr.operations(before) {
					if op == "SendMessageBatch" {
						sends++
					}
				}
				if sends != c.runs { // its outcome, or nothing
					t.Errorf("%d sends", sends)
				}
			})
		})
	}
}

// settles has #3 succeed.
func (tr *trial) settles(in provider.Instance) {
	tr.complete(in, 1, 3)
	tr.turn(0)
}

// fails has attempt 1 of #3 fail.
func (tr *trial) fails(in provider.Instance) {
	tr.tell(in, failed(3, 1, "r.1", time.Now()))
	tr.wantSent(2)
}

// commits has a turn of these events committed.
func (tr *trial) commits(in provider.Instance, events ...history.Event) {
	tr.t.Helper()
	o, err := tr.Provider.ReadOrchestration(tr.t.Context(), &provider.OrchestrationItem{InstanceID: in.InstanceID}, provider.Strong)
	if err != nil {
		tr.t.Fatal(err)
	}
	for i := range events {
		events[i].ID, events[i].Time = o.Last().ID+1+int64(i), time.Now().UTC()
	}
	if _, err := tr.Provider.AckOrchestrationItem(tr.t.Context(), &provider.Turn{InstanceID: in.InstanceID, Head: o.Head, Watermark: o.Head.Watermark, Events: events}); err != nil {
		tr.t.Fatal(err)
	}
}

// It cannot be read whether it has ended: it goes back, and is not run.
func TestWhatMayHaveEndedIsGivenBackWhileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	told(t, func(ctx context.Context, tr *trial, in provider.Instance, _ time.Time) {
		tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, query := c.Input.(*dynamodb.QueryInput); query {
				return errors.New("refused")
			}
			return next()
		})
		w := provider.WorkItem{V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Name: "try", Queue: "default", Attempt: 1, Input: encoded(t, stubbornness{})}
		if failed := tr.worker(registryOf(tr)).HandleRecords(ctx, []provider.Record{again(t, w, 2)}); len(failed) != 1 || len(tr.ran()) > 0 {
			t.Errorf("failed %v, ran %v", failed, tr.ran())
		}
	})
}

// Ten thousand activities of one execution come again, whose outcomes are ten thousand segments: the worker reads those once.
func TestTenThousandThatComeAgainReadTheirHistoryOnce(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const n, batch = 10_000, 10
	told(t, func(ctx context.Context, tr *trial, in provider.Instance, now time.Time) {
		head := provider.Head{ExecutionID: in.ExecutionID, Segment: 1}
		for i := range int64(n) {
			e := history.Event{ID: 4 + i, Kind: history.ActivityCompleted, Time: now, SourceEventID: 3, Attempt: 1}
			if i > 0 {
				e.SourceEventID = 3 + i
			}
			turn := &provider.Turn{InstanceID: "a", Head: head, Events: []history.Event{e}}
			if _, err := tr.Provider.AckOrchestrationItem(ctx, turn); err != nil {
				t.Fatal(err)
			}
			head = turn.After()
		}
		tr.interfere(nil)
		w := tr.worker(registryOf(tr))
		tr.Cloud.ResetCounts()
		pages := int64(0)
		for i := int64(0); i < n; i += batch {
			var records []provider.Record
			for j := range int64(batch) {
				item := provider.WorkItem{V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3 + i + j, Name: "try", Queue: "default", Attempt: 1}
				records = append(records, again(t, item, 2))
			}
			w.HandleRecords(ctx, records)
			if i == 0 {
				pages = tr.Cloud.Counts()["DynamoDB.Query"]
			}
		}
		queries, reads := tr.Cloud.Counts()["DynamoDB.Query"], tr.Cloud.Capacity().Read
		t.Logf("%d activities: %d queries, %d of them for the first look, %v read units in all", n, queries, pages, reads)
		if len(tr.ran()) > 0 || queries > pages+n/batch || reads > 5*n {
			t.Errorf("%d ran, %d queries, %v read units", len(tr.ran()), queries, reads)
		}
	})
}

// A retried attempt that no worker knows is sent anew as soon as its deliveries say, and only the next time after five minutes.
func TestARetriedAttemptThatIsSentAnewWaitsNoLongerThanAFirstOne(t *testing.T) {
	t.Parallel()
	told(t, func(ctx context.Context, tr *trial, in provider.Instance, now time.Time) {
		tr.tell(in, failed(3, 1, "r.1", now))
		old := must(dispatch.NewWorker(perdure.NewRegistry(), tr.Provider, &dispatch.WorkerOptions{ResendAfterDeliveries: 5}))
		item := tr.workItems()[0]
		for _, want := range []time.Duration{32 * time.Second, 5 * time.Minute} {
			if item.Attempt != 2 || item.NotBefore == nil {
				t.Fatalf("%+v", item)
			}
			record := item.Record
			record.ReceiveCount = 5
			sent := time.Now()
			if failed := old.HandleRecords(ctx, []provider.Record{record}); len(failed) > 0 {
				t.Fatalf("failed %v", failed)
			}
			time.Sleep(want)
			items := tr.workItems()
			if len(items) != 1 || !items[0].PossibleDuplicate || items[0].NotBefore.Sub(sent) != want {
				t.Fatalf("after %v: %+v", want, items)
			}
			item = items[0]
		}
		if item.ResendCount != 2 {
			t.Errorf("%s", item.Record.Body)
		}
	})
}
