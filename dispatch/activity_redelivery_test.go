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

// orders records the charges and refunds of orchestrations that charge a card, wait for an event, and refund the charge
// if they are cancelled.
type orders struct {
	mu     sync.Mutex
	charge map[string][]time.Time // by instance
	refund map[string]time.Time
}

// registry returns the orchestration "order" and its activities.
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

// 1. Each worker crashes after it has sent the outcome of a charge, and before it deletes the record.
// 2. The order is cancelled, and its charge is refunded.
// 3. SQS redelivers the record. The worker does not charge the card again.
func TestRedelivery_cancelledOrderWasRefunded_isNotChargedAgain(t *testing.T) {
	t.Parallel()
	const n = 126
	for _, after := range []time.Duration{time.Second, 45 * time.Second} { // before and during the redeliveries
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			o := &orders{charge: map[string][]time.Time{}, refund: map[string]time.Time{}}
			var dying atomic.Bool
			dying.Store(true)
			crash := simhub.Crash(func(c simaws.Call) (bool, bool) {
				sent, ok := c.Input.(*sqs.SendMessageBatchInput)
				return false, ok && dying.Load() && strings.Contains(*sent.Entries[0].MessageBody, `"activityOutcomes"`)
			})
			inBubble(t, simhub.Options{Registry: o.registry(), Intercept: crash, WorkVisibility: 30 * time.Second},
				func(_ context.Context, h *hub) {
					var all []provider.Instance
					for i := range n {
						all = append(all, h.startAs(fmt.Sprint("order-", i), "order", i))
					}
					h.serveFor(after)
					dying.Store(false)
					for _, in := range all {
						h.send(provider.Message{
							Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
							RequestedBy: history.RequestedByClient,
						})
					}
					h.serveFor(24 * time.Hour)
					again := 0
					for _, in := range all {
						again += len(o.charge[in.InstanceID]) - 1
						charges := o.charge[in.InstanceID]
						refund, ok := o.refund[in.InstanceID]
						if !ok || len(charges) != 1 || refund.Before(charges[0]) {
							t.Errorf("%s: charged %v, refunded %v; want one charge and a later refund",
								in.InstanceID, charges, refund)
						}
					}
					t.Logf("got %d repeated charges of %d orders", again, n)
					h.checkRest()
				})
		})
	}
}

// again returns a record of a work item with a delivery count.
func again(t *testing.T, w provider.WorkItem, receives int) provider.Record {
	t.Helper()
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Record{
		ID:            fmt.Sprint("again-", w.ActivityID, "-", w.Attempt, "-", receives),
		ReceiptHandle: "none", Body: string(body), ReceiveCount: receives,
	}
}

// A redelivered work item runs only if its attempt is open in history.
func TestRedelivery_workItem_runsOnlyIfItsAttemptIsOpen(t *testing.T) {
	t.Parallel()
	parked := history.Event{
		Kind: history.InputsParked, BuildID: "b", Error: &history.Failure{Type: "T"},
		Inputs: []history.Event{{Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1}},
	}
	cases := map[string]struct {
		before func(tr *retryHub, in provider.Instance)
		item   func(w *provider.WorkItem)
		counts int
		runs   int
	}{
		"second delivery of an open activity":  {counts: 2, runs: 1},
		"second delivery of an ended activity": {before: (*retryHub).settles, counts: 2},
		"first delivery of an ended activity":  {before: (*retryHub).settles, counts: 1, runs: 1},
		// without a read of the history
		"duplicate of an ended activity": {
			before: (*retryHub).settles, item: func(w *provider.WorkItem) { w.PossibleDuplicate = true }, counts: 1,
		},
		"duplicate of an open activity": {
			item: func(w *provider.WorkItem) { w.PossibleDuplicate = true }, counts: 1, runs: 1,
		},
		"second delivery with a parked outcome": {
			before: func(tr *retryHub, in provider.Instance) { tr.commits(in, parked) }, counts: 2,
		},
		"second delivery of a past attempt": {before: (*retryHub).fails, counts: 2},
		"current attempt": {
			before: (*retryHub).fails, item: func(w *provider.WorkItem) { w.Attempt = 2 }, counts: 1, runs: 1,
		},
		"future attempt": {
			before: (*retryHub).fails, item: func(w *provider.WorkItem) { w.Attempt = 3 }, counts: 1,
		},
		"later attempt of an ended activity": {
			before: (*retryHub).settles, item: func(w *provider.WorkItem) { w.Attempt = 2 }, counts: 1,
		},
		"attempt sent by an earlier release": {item: func(w *provider.WorkItem) { w.Attempt = 4 }, counts: 1, runs: 1},
		"second delivery for a deleted instance": {before: func(tr *retryHub, in provider.Instance) {
			if err := tr.Provider.DeleteInstance(tr.t.Context(), in.InstanceID, true); err != nil {
				tr.t.Error(err)
			}
		}, counts: 2},
		"second delivery with an unreadable history": {before: func(tr *retryHub, in provider.Instance) {
			segment := tr.item("x#"+in.ExecutionID, "h#0000000001")
			tr.damage(segment)
		}, counts: 2, runs: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withoutWorker(t, func(ctx context.Context, tr *retryHub, in provider.Instance, _ time.Time) {
				w := provider.WorkItem{
					V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Name: "try",
					Queue: "default", Attempt: 1, Input: encoded(t, retryInput{SucceedsAt: 1}),
					Retry: &history.RetryPolicy{InitialIntervalMs: 1000},
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
					t.Errorf("got failed records %v and runs %v, want none and %d", failed, tr.ran(), c.runs)
				}
				sends := 0
				for _, op := range tr.operations(before) {
					if op == "SendMessageBatch" {
						sends++
					}
				}
				if sends != c.runs { // the outcomes of runs
					t.Errorf("got %d sends, want %d", sends, c.runs)
				}
			})
		})
	}
}

// settles completes activity #3.
func (tr *retryHub) settles(in provider.Instance) {
	tr.complete(in, 1, 3)
	tr.turn(0)
}

// fails reports a failure of attempt 1 of activity #3.
func (tr *retryHub) fails(in provider.Instance) {
	tr.tell(in, failed(3, 1, "r.1", time.Now()))
	tr.wantSent(2)
}

// commits creates a segment with events, like a turn.
func (tr *retryHub) commits(in provider.Instance, events ...history.Event) {
	tr.t.Helper()
	item := &provider.OrchestrationItem{InstanceID: in.InstanceID}
	o, err := tr.Provider.ReadOrchestration(tr.t.Context(), item, provider.Strong)
	if err != nil {
		tr.t.Fatal(err)
	}
	for i := range events {
		events[i].ID, events[i].Time = o.Last().ID+1+int64(i), time.Now().UTC()
	}
	turn := &provider.Turn{InstanceID: in.InstanceID, Head: o.Head, Watermark: o.Head.Watermark, Events: events}
	if _, err := tr.Provider.AckOrchestrationItem(tr.t.Context(), turn); err != nil {
		tr.t.Fatal(err)
	}
}

// The worker cannot read whether a redelivered activity has ended. It releases the record and does not run the
// activity.
func TestRedelivery_historyReadFails_recordIsReleased(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(ctx context.Context, tr *retryHub, in provider.Instance, _ time.Time) {
		tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, query := c.Input.(*dynamodb.QueryInput); query {
				return errors.New("refused")
			}
			return next()
		})
		w := provider.WorkItem{
			V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Name: "try",
			Queue: "default", Attempt: 1, Input: encoded(t, retryInput{}),
		}
		failed := tr.worker(registryOf(tr)).HandleRecords(ctx, []provider.Record{again(t, w, 2)})
		if len(failed) != 1 || len(tr.ran()) > 0 {
			t.Errorf("got failed records %v and runs %v, want 1 and none", failed, tr.ran())
		}
	})
}

// Ten thousand activities of an execution are redelivered, and their outcomes are in ten thousand segments. The worker
// reads the segments once.
func TestRedelivery_tenThousandWorkItems_readTheHistoryOnce(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const n, batch = 10_000, 10
	withoutWorker(t, func(ctx context.Context, tr *retryHub, in provider.Instance, now time.Time) {
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
				item := provider.WorkItem{
					V: 1, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3 + i + j, Name: "try",
					Queue: "default", Attempt: 1,
				}
				records = append(records, again(t, item, 2))
			}
			w.HandleRecords(ctx, records)
			if i == 0 {
				pages = tr.Cloud.Counts()["DynamoDB.Query"]
			}
		}
		queries, reads := tr.Cloud.Counts()["DynamoDB.Query"], tr.Cloud.Capacity().Read
		t.Logf("%d activities: %d queries, %d of them for the first batch, %v read units", n, queries, pages, reads)
		if len(tr.ran()) > 0 || queries > pages+n/batch || reads > 5*n {
			t.Errorf("got %d runs, %d queries, %v read units", len(tr.ran()), queries, reads)
		}
	})
}

// A worker without the activity resends a retried attempt. The first delay is the delay of its deliveries, and the next
// delay is five minutes.
func TestRedelivery_unknownRetriedActivity_isSentAgainSoon(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(ctx context.Context, tr *retryHub, in provider.Instance, now time.Time) {
		tr.tell(in, failed(3, 1, "r.1", now))
		old := must(dispatch.NewWorker(perdure.NewRegistry(), tr.Provider,
			&dispatch.WorkerOptions{ResendAfterDeliveries: 5}))
		item := tr.workItems()[0]
		for _, want := range []time.Duration{32 * time.Second, 5 * time.Minute} {
			if item.Attempt != 2 || item.NotBefore == nil {
				t.Fatalf("got work item %+v, want attempt 2 with a time", item)
			}
			record := item.Record
			record.ReceiveCount = 5
			sent := time.Now()
			if failed := old.HandleRecords(ctx, []provider.Record{record}); len(failed) > 0 {
				t.Fatalf("got failed records %v, want none", failed)
			}
			time.Sleep(want)
			items := tr.workItems()
			if len(items) != 1 || !items[0].PossibleDuplicate || items[0].NotBefore.Sub(sent) != want {
				t.Fatalf("got work items %+v after %v, want one possible duplicate", items, want)
			}
			item = items[0]
		}
		if item.ResendCount != 2 {
			t.Errorf("got work item %s, want it sent again twice", item.Record.Body)
		}
	})
}
