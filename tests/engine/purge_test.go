package engine_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

const (
	// segmentBytes is the size of each segment of the gigabyte. A segment has one part.
	segmentBytes = 350 << 10
	gigabyte     = 1 << 30
	// functionMemory is the memory of the renewer and of the API function.
	functionMemory = 256 << 20
)

// heavyTable simulates the memory use of large segments: each read allocates the segment, and a page ends at 1 MB.
type heavyTable struct {
	*simaws.Table

	t         *testing.T
	mu        sync.Mutex
	packer    *zstd.Encoder
	execution string
	heavy     []byte // the large value in the events of a segment
	reads     int
	read      int64 // bytes
	base      uint64
	most      uint64        // maximum of the heap, minus base
	page      time.Duration // latency of a page of 1 MB; a page of keys has a tenth of it
}

// Query implements the table client of the provider.
func (h *heavyTable) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	const pageItems = 3 // pages of the size of a segment
	limited := *in
	if in.IndexName == nil && in.Limit == nil && (in.ProjectionExpression == nil || h.page == 0) {
		limited.Limit = aws.Int32(pageItems)
	}
	out, err := h.Table.Query(ctx, &limited, opts...)
	if err == nil && h.page > 0 {
		err = h.wait(ctx, in, len(out.Items))
	}
	if err != nil {
		return nil, err
	}

	// Segments are created one at a time, and not during a measurement, to exclude the memory of the table itself.
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, it := range out.Items {
		if it["zstd"] != nil {
			it = maps.Clone(it)
			it["zstd"] = &types.AttributeValueMemberB{Value: h.segment(text(it["sk"]))}
			out.Items[i] = it
			h.read += segmentBytes
		}
	}
	if h.reads++; h.reads%50 == 0 {
		h.measure()
	}
	return out, nil
}

// wait sleeps for the time that a read of these items takes.
func (h *heavyTable) wait(ctx context.Context, in *dynamodb.QueryInput, items int) error {
	took := 10*time.Millisecond + h.page*time.Duration(items)/3
	if in.ProjectionExpression != nil {
		took /= 10
	}
	select {
	case <-time.After(took):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	return s.Value
}

// measure updates the maximum of the heap in use.
func (h *heavyTable) measure() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc-min(h.base, m.HeapAlloc))
}

// segment returns a segment with an activity that has completed with a large, incompressible result.
func (h *heavyTable) segment(sk string) []byte {
	var n int64
	if _, err := fmt.Sscanf(sk, "h#%d", &n); err != nil {
		h.t.Fatal(err)
	}
	at := "2026-01-01T00:00:00Z"
	doc := fmt.Sprintf(`[{"id":%d,"kind":"TurnStarted","time":%q,"version":"0","buildId":"b"},{"id":%d,"kind":"ActivityScheduled","time":%q,"name":"a","queue":"default","input":1},`,
		3*n-1, at, 3*n, at)
	settles := 3*n - 3 // the activity of the previous turn
	if n == 1 {
		doc = strings.Replace(doc, `"kind":"ActivityScheduled"`,
			`"kind":"SubOrchestrationScheduled","instanceId":"child","startId":"x-1:3"`, 1)
		doc = strings.Replace(doc, `,"queue":"default"`, "", 1)
	}
	if n < 3 {
		doc += fmt.Sprintf(`{"id":%d,"kind":"SideEffectRecorded","time":%q,"value":%q}]`, 3*n+1, at, h.heavy)
	} else {
		doc += fmt.Sprintf(`{"id":%d,"kind":"ActivityCompleted","time":%q,"sourceEventId":%d,"attempt":1,"result":%q}]`,
			3*n+1, at, settles, h.heavy)
	}
	return h.packer.EncodeAll([]byte(doc), nil)
}

// newHeavy returns a hub with one instance that has a gigabyte of history. Its stored segments may be smaller than the
// segments that reads return.
func newHeavy(t *testing.T, over bool, bytes int) (*dynamo.Provider, *heavyTable, *simaws.Cloud) {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{
			{Name: "byCreation", PartitionKey: "gs", SortKey: "created"},
			{Name: "byAttention", PartitionKey: "attention", SortKey: "updated"},
		},
	}))
	h := &heavyTable{Table: cloud.Table, t: t, heavy: make([]byte, 0, segmentBytes)}
	var err error
	if h.packer, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1)); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, bytes-2<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	h.heavy = []byte(base64.StdEncoding.EncodeToString(noise))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
		TimersURL: cloud.Queues.Create("timers", simaws.QueueConfig{}),
	}
	p, err := dynamo.New(where, dynamo.Clients{Table: h, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	in, err := p.StartOrchestration(t.Context(), provider.Start{
		InstanceID: "large", Name: "order", StartID: "s", Input: history.Payload("1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.execution = in.ExecutionID
	h.putSegments(in, where.InboxURL, gigabyte/segmentBytes)
	if over {
		last := int64(gigabyte / segmentBytes)
		end := &provider.Turn{
			InstanceID: "large", Head: provider.Head{ExecutionID: in.ExecutionID, Segment: last},
			Events: []history.Event{
				{
					ID: 3*last + 2, Kind: history.OrchestrationCompleted, Time: time.Unix(0, 0),
					Output: history.Payload("1"),
				},
			},
		}
		if _, err := p.AckOrchestrationItem(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.base = m.HeapAlloc
	return p, h, cloud
}

// A function with 256 MB purges an instance with a gigabyte of history. For an ended instance it reads no payloads. For
// a running instance it cancels all open work, including work that started at the other end of the history.
func TestPurge_gigabyteOfHistory_fitsIntoSmallFunction(t *testing.T) {
	shortrun.Skip(t)
	for name, over := range map[string]bool{"over": true, "running": false} {
		t.Run(name, func(t *testing.T) {
			p, table, cloud := newHeavy(t, over, segmentBytes)
			began := time.Now()
			if err := p.DeleteInstance(t.Context(), "large", true); err != nil {
				t.Fatal(err)
			}
			table.measure()
			t.Logf("%d MB of history in %v: %d MB of payloads came over the wire in %d queries, the heap grew by up "+
				"to %d MB", gigabyte>>20, time.Since(began).Round(time.Second),
				table.read>>20, table.reads, table.most>>20)
			if table.most > functionMemory/4 {
				t.Errorf("the heap grew by %d MB", table.most>>20)
			}
			if over && table.read > 4<<20 {
				t.Errorf("%d MB of payloads were read of what is over", table.read>>20)
			}
			if cancelled := table.childIsCancelled(cloud); cancelled == over {
				t.Errorf("that its child was cancelled is %v", cancelled)
			}
			if n := table.stubs(); n < gigabyte/segmentBytes {
				t.Errorf("%d stubs: a place is free", n)
			}
		})
	}
}

// putSegments adds segments to the history of an instance.
func (h *heavyTable) putSegments(in provider.Instance, inbox string, segments int) {
	h.t.Helper()
	for n := 1; n <= segments; n++ {
		it := map[string]types.AttributeValue{
			"pk": textValue("x#" + in.ExecutionID), "sk": textValue(fmt.Sprintf("h#%010d", n)), "nonce": textValue("n"),
			"parts": &types.AttributeValueMemberN{Value: "1"},
			"wm":    textValue(fmt.Sprint(n)), "inbox": textValue(inbox),
			"zstd": &types.AttributeValueMemberB{Value: []byte("heavy")},
		}
		if _, err := h.PutItem(h.t.Context(),
			&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// A job or a retention purges 32 instances at once in a function with 256 MB.
func TestPurge_manyLargeInstancesAtOnce_fitsIntoSmallFunction(t *testing.T) {
	shortrun.Skip(t)
	const instances, segments = 32, 24
	p, table, _ := newHeavy(t, true, segmentBytes)
	for i := range instances {
		in, err := p.StartOrchestration(t.Context(), provider.Start{
			InstanceID: fmt.Sprint("large-", i), Name: "order", StartID: "s", Input: history.Payload("1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		table.putSegments(in, p.Config().InboxURL, segments)
	}
	table.base = 0
	table.most = 0
	table.measure()
	table.base, table.most = table.most, 0
	var deleting sync.WaitGroup
	for i := range instances {
		deleting.Go(func() {
			if err := p.DeleteInstance(t.Context(), fmt.Sprint("large-", i), true); err != nil {
				t.Error(err)
			}
		})
	}
	deleting.Wait()
	t.Logf("%d instances of %d MB at once: the heap grew by up to %d MB", instances, segments*segmentBytes>>20,
		table.most>>20)
	if table.most > functionMemory/2 {
		t.Errorf("the heap grew by %d MB", table.most>>20)
	}
}

// A function with 256 MB has a seventh of a processor and needs about 100 ms for a page of 1 MB. A gigabyte takes
// minutes, and a call of the API at most 29 seconds. Repeated calls that are interrupted still finish the deletion.
// They cancel the child that started at the other end of the history, and do not cancel settled children.
func TestPurge_runningInstanceWithGigabyte_finishesInSeveralCalls(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, table, cloud := newHeavy(t, false, 3<<10)
		table.page = 100 * time.Millisecond
		began := time.Now()
		for calls := 1; ; calls++ {
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			err := p.DeleteInstance(ctx, "large", true)
			stop()
			if err == nil {
				t.Logf("%d MB of history in %d calls of 20 s, %v together", gigabyte>>20, calls,
					time.Since(began).Round(time.Second))
				break
			}
			if in, err := p.ReadInstance(t.Context(), "large"); err != nil || in.Status != provider.StatusDeleting {
				t.Fatalf("after a call it is %s, %v: its code goes on", in.Status, err)
			}
			if calls == 20 {
				t.Fatalf("after %d calls: %v", calls, err)
			}
			time.Sleep(time.Second)
		}
		if !table.childIsCancelled(cloud) {
			t.Error("its child was not cancelled")
		}
		if n := table.stubs(); n < gigabyte/segmentBytes {
			t.Errorf("%d stubs: a place is free", n)
		}
	})
}

// childIsCancelled reports whether the inbox has the cancel message of the child.
func (h *heavyTable) childIsCancelled(cloud *simaws.Cloud) (found bool) {
	for range 10 {
		out, err := cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String("sim://inbox.fifo"), MaxNumberOfMessages: 10,
		})
		if err != nil {
			h.t.Fatal(err)
		}
		for _, m := range out.Messages {
			found = found || strings.Contains(*m.Body, `"kind":"cancel"`) && strings.Contains(*m.Body, `"child"`)
		}
	}
	return found
}

// stubs returns the number of stubs that replace deleted segments.
func (h *heavyTable) stubs() (n int) {
	in := &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :h)"),
		FilterExpression: aws.String("attribute_exists(stub)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": textValue("x#" + h.execution), ":h": textValue("h#"),
		},
	}
	for {
		out, err := h.Table.Query(h.t.Context(), in)
		if err != nil {
			h.t.Fatal(err)
		}
		n += len(out.Items)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return n
		}
	}
}
