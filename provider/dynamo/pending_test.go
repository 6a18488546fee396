package dynamo

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// waitingHub is a hub with one instance, whose history is written as turns write it.
type waitingHub struct {
	t        *testing.T
	cloud    *simaws.Cloud
	provider *Provider
	instance provider.Instance
	segments int64
	events   int64
	stored   int    // bytes of the segments
	peak     uint64 // heap growth in bytes while a history is read
}

// measured is the provider. It measures the heap while a history is read.
type measured struct {
	*Provider

	h    *waitingHub
	base uint64
}

func (m *measured) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		n := 0
		for e, err := range m.Provider.ReadHistory(ctx, instanceID, executionID, after) {
			if n++; int64(n)%(m.h.events/5) == 0 {
				now := heap()
				m.h.peak = max(m.h.peak, now-min(m.base, now))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func newWaitingHub(t *testing.T) *waitingHub {
	t.Helper()
	h := &waitingHub{t: t, segments: 1, events: 1}
	h.cloud = simaws.New(simaws.WithTable(simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk", Indexes: []simaws.Index{
			{Name: table.IndexByCreation, PartitionKey: table.AttrShard, SortKey: table.AttrCreated},
		},
	}))
	var err error
	where := HubConfig{Name: "h", Table: "perdure", InboxURL: h.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{})}
	if h.provider, err = New(where, Clients{Table: h.cloud.Table, Queues: h.cloud.Queues}); err != nil {
		t.Fatal(err)
	}
	if h.instance, err = h.provider.StartOrchestration(t.Context(),
		provider.Start{InstanceID: "i", Name: "order", StartID: "s"}); err != nil {
		t.Fatal(err)
	}
	return h
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (h *waitingHub) put(it table.Item) {
	h.t.Helper()
	if _, err := h.cloud.Table.PutItem(h.t.Context(),
		&dynamodb.PutItemInput{TableName: &h.provider.hub.Table, Item: it}); err != nil {
		h.t.Fatal(err)
	}
}

// sizeOf returns the size of the events of an item.
func sizeOf(it table.Item) int {
	n := len(table.GetString(it, table.AttrEvents))
	if packed, ok := it[table.AttrZstd].(*types.AttributeValueMemberB); ok {
		n += len(packed.Value)
	}
	return n
}

// commit writes the segment of a turn.
func (h *waitingHub) commit(events ...history.Event) {
	h.t.Helper()
	for i := range events {
		h.events++
		events[i].ID, events[i].Time = h.events, time.Unix(h.segments, 0).UTC()
	}
	items, err := segments.Encode(h.instance.ExecutionID, fmt.Sprint("n", h.segments), provider.Segment{
		Sequence: h.segments, Events: events,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, it := range items {
		h.stored += sizeOf(it)
		h.put(it)
	}
	h.segments++
}

// pending returns the pending items, and logs the cost of the read.
func (h *waitingHub) pending(limit int) client.Pending {
	h.t.Helper()
	h.cloud.ResetCounts()
	began := time.Now()
	p, err := client.New(&measured{h.provider, h, heap()}).Pending(h.t.Context(), "i", "", limit)
	if err != nil {
		h.t.Fatal(err)
	}
	took, counts := time.Since(began), h.cloud.Counts()
	h.t.Logf("%d pending, %d returned, history of %.1f MB: %v, %d queries, %d item reads, at most %.1f MB of heap",
		p.Total, len(p.Items), float64(h.stored)/(1<<20),
		took.Round(time.Millisecond), counts["DynamoDB.Query"], counts["DynamoDB.GetItem"], float64(h.peak)/(1<<20))
	return p
}

// The instance waits for 100,000 activities. 5,000 of them have failed before, and some have large heartbeat details.
func TestPending_hundredThousandActivities_limitsReadsAndMemory(t *testing.T) { // alone: it measures the heap
	h := newWaitingHub(t)
	scheduled := make([]history.Event, 1, 100_001)
	scheduled[0].Kind = history.TurnStarted
	for i := range 100_000 {
		scheduled = append(scheduled, history.Event{
			Kind: history.ActivityScheduled, Name: "resize", Queue: "default",
			Input: fmt.Appendf(nil, `{"image":"s3://bucket/image-%d.png"}`, i),
			Retry: &history.RetryPolicy{
				InitialIntervalMs: 1000, MaxIntervalMs: 60_000, BackoffCoefficient: 2, Jitter: 0.2,
			},
		})
	}
	h.commit(scheduled...)
	failure, err := activityrecords.EncodeFailure(&history.Failure{
		Type: "ImageError", Message: strings.Repeat("no such image ", 50),
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(50_000); id < 55_000; id++ {
		it := table.AttemptKey(h.instance.ExecutionID, id)
		it[activityrecords.AttrAttempt], it[activityrecords.AttrError] = table.Num(3), table.Str(failure)
		it[activityrecords.AttrAt] = table.Str(table.FormatTime(time.Unix(100, 0)))
		it[activityrecords.AttrFailedAt] = table.Str(table.FormatTime(time.Unix(50, 0)))
		h.put(it)
	}
	for id := int64(50_000); id < 50_020; id++ {
		details := []byte(`"` + strings.Repeat("x", 200<<10-2) + `"`)
		if err := h.provider.PutActivityRecords(t.Context(), h.instance.ExecutionID,
			provider.ActivityRecord{ActivityID: id, LastHeartbeatAt: time.Unix(60, 0), Details: details}); err != nil {
			t.Fatal(err)
		}
	}
	p := h.pending(0)
	if p.Total != 100_000 || len(p.Items) != 100 || p.Items[0].ID != 50_000 ||
		p.Items[0].LastError.Type != "ImageError" || p.Items[19].LastHeartbeatAt.IsZero() {
		t.Errorf("%d pending, %d returned: %+v", p.Total, len(p.Items), p.Items[0])
	}
	if counts := h.cloud.Counts(); counts["DynamoDB.Query"] > 10 || counts["DynamoDB.GetItem"] > 101 {
		t.Errorf("calls %v", counts)
	}
	if h.peak > 160<<20 {
		t.Errorf("%d bytes of heap", h.peak)
	}
}

// Pending reads the completed part of a history without holding it in memory.
func TestPending_longHistory_isNotHeldInMemory(t *testing.T) { // alone: it measures the heap
	h := newWaitingHub(t)
	noise := rand.NewChaCha8([32]byte{})
	const turns, payload = 150, 150 << 10
	for range turns {
		b := make([]byte, payload/2)
		_, _ = noise.Read(b)
		h.commit(history.Event{Kind: history.TurnStarted}, history.Event{
			Kind: history.ActivityScheduled, Name: "step", Input: fmt.Appendf(nil, `"%x"`, b),
		},
			history.Event{Kind: history.TurnStarted}, history.Event{
				Kind: history.ActivityCompleted, SourceEventID: h.events + 2, Result: history.Payload("1"),
			})
	}
	for range 3 {
		h.commit(history.Event{Kind: history.TurnStarted}, history.Event{Kind: history.ActivityScheduled, Name: "last"})
	}
	if p := h.pending(0); p.Total != 3 || p.Items[0].Name != "last" {
		t.Errorf("%+v", p)
	}
	if h.peak > 4<<20 {
		t.Errorf("%d bytes of heap for a history of %d bytes", h.peak, turns*payload)
	}
}
