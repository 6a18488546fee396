package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// bench is a provider with an instance whose turns a test commits.
type bench struct {
	t     *testing.T
	cloud *simaws.Cloud
	p     *dynamo.Provider
	head  provider.Head
	id    int64
	block provider.CancelBlock
	now   time.Time
	// unchained makes turns omit the segment of the previous cancelling turn. The first builds that wrote the cancels
	// of turns also omitted it.
	unchained bool
}

// filteredTable is a table whose query results a test can change.
type filteredTable struct {
	*simaws.Table

	hide func(out *dynamodb.QueryOutput)
}

func (b filteredTable) Query(
	ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	out, err := b.Table.Query(ctx, in, o...)
	if err == nil && b.hide != nil {
		b.hide(out)
	}
	return out, err
}

func newBench(t *testing.T, hide func(out *dynamodb.QueryOutput)) *bench {
	t.Helper()
	b := &bench{t: t, id: 1, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	b.cloud = simaws.New(simaws.WithTable(table()))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: b.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
		WorkQueues: map[string]string{},
	}
	var err error
	b.p, err = dynamo.New(where, dynamo.Clients{Table: filteredTable{b.cloud.Table, hide}, Queues: b.cloud.Queues},
		dynamo.WithClock(func() time.Time {
			return b.now
		}))
	if err != nil {
		t.Fatal(err)
	}
	in, err := b.p.StartOrchestration(t.Context(), provider.Start{InstanceID: "a", Name: "order", StartID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	b.head = provider.Head{ExecutionID: in.ExecutionID}
	return b
}

// turn returns the next turn, which cancels an activity for a reason. With the ID 0 it cancels no activity.
func (b *bench) turn(id int64, reason string) *provider.Turn {
	t := &provider.Turn{
		InstanceID: "a", Head: b.head,
		Events: []history.Event{{ID: b.id + 1, Kind: history.TurnStarted, Time: b.now, Version: "1"}},
	}
	if id > 0 {
		t.Cancels = provider.Cancels{{IDs: []history.Range{{First: id, Last: id}}, Reason: reason, At: b.now}}
		if last := b.block.Last; !b.unchained {
			t.CancelsAfter = &last
		}
	}
	_, t.CancelBlock = b.block.Add(t.Head.Segment+1, t.Cancels)
	return t
}

func (b *bench) commit(t *provider.Turn) {
	b.t.Helper()
	if _, err := b.p.AckOrchestrationItem(b.t.Context(), t); err != nil {
		b.t.Fatal(err)
	}
	b.block, _ = b.block.Add(t.Head.Segment+1, t.Cancels)
	b.head, b.id = t.After(), b.id+int64(len(t.Events))
}

// put writes an item of the execution unchanged.
func (b *bench) put(it map[string]types.AttributeValue) {
	b.t.Helper()
	it["pk"] = &types.AttributeValueMemberS{Value: "x#" + b.head.ExecutionID}
	if _, err := b.cloud.Table.PutItem(b.t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		b.t.Fatal(err)
	}
}

// wantReasons reads the record from a segment, and checks that activities 1, 2, … are cancelled for these reasons.
func (b *bench) wantReasons(from int64, want ...string) provider.Cancels {
	b.t.Helper()
	c, _, err := b.p.ReadCancels(b.t.Context(), b.head.ExecutionID, from)
	if err != nil {
		b.t.Fatal(err)
	}
	for i, reason := range want {
		if got := c.Of(int64(i + 1)).Reason; got != reason {
			b.t.Errorf("from segment %d: activity %d: %q, want %q", from, i+1, got, reason)
		}
	}
	return c
}

// old returns a record in the format of the previous release, which writes the whole record with each cancelling turn.
func old(reasons ...string) string {
	var entries []map[string]any
	for i, reason := range reasons {
		entries = append(entries, map[string]any{
			"ids": [][2]int{{i + 1, i + 1}}, "reason": reason, "at": "2026-11-22T12:00:00Z",
		})
	}
	doc, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(doc)
}

func mark(doc string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"sk": &types.AttributeValueMemberS{Value: "c"}, "cancels": &types.AttributeValueMemberS{Value: doc},
	}
}

func sortKey(it map[string]types.AttributeValue) string {
	if v, ok := it["sk"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// During a deployment or after a rollback, turns of the previous release write the whole record to item c, between
// turns of this release.
func TestReadCancels_recordsOfPreviousRelease_areMerged(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.commit(b.turn(0, "")) // segment 1, of the previous release
	b.put(mark(old("first")))
	b.wantReasons(0, "first", "")
	b.commit(b.turn(2, "second"))
	b.wantReasons(0, "first", "second", "")
	b.wantReasons(2, "first", "second", "")
	b.commit(b.turn(0, "")) // segment 3, also of the previous release
	b.put(mark(old("first", "second", "third")))
	b.commit(b.turn(3, "too late"))
	b.commit(b.turn(4, "fourth"))
	b.wantReasons(0, "first", "second", "third", "fourth", "")
	b.wantReasons(5, "first", "second", "third", "fourth", "")

	// The previous release deletes the instance. It writes only item c.
	b.put(mark(strings.TrimSuffix(old("first", "second", "third"), "]") +
		`,{"open":true,"reason":"instance_deleted","at":"2026-11-22T12:00:00Z"}]`))
	if c := b.wantReasons(0, "first", "second", "third", "fourth", "instance_deleted"); !c.Of(4).Deleted ||
		!c.Of(99).Deleted {
		t.Errorf("the deletion of the instance is not in the cancels: %+v", c)
	}
}

// A large record of the previous release is stored in parts.
func TestReadCancels_largeRecordOfPreviousRelease_isRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var reasons []string
	for i := range 3000 {
		reasons = append(reasons, fmt.Sprint("reason ", i))
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll([]byte(old(reasons...)), nil)
	half := len(packed) / 2
	for sk, part := range map[string][]byte{"c#000": packed[:half], "c#001": packed[half:]} {
		b.put(map[string]types.AttributeValue{
			"sk": &types.AttributeValueMemberS{Value: sk}, "zstd": &types.AttributeValueMemberB{Value: part},
		})
	}
	b.put(map[string]types.AttributeValue{
		"sk": &types.AttributeValueMemberS{Value: "c"}, "parts": &types.AttributeValueMemberN{Value: "2"},
	})
	b.commit(b.turn(3001, "of this release"))
	b.wantReasons(0, append(reasons, "of this release", "")...)
	b.wantReasons(1, append(reasons, "of this release", "")...)
	if err := b.p.DeleteInstance(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	if c := b.wantReasons(0, append(reasons, "of this release", "instance_deleted")...); !c.Of(7).Deleted {
		t.Error("the deletion of the instance is not in the cancels")
	}
}

// hiding returns a bench whose queries omit the item with the sort key that hide has set.
func hiding(t *testing.T) (b *bench, hide func(sk string)) {
	t.Helper()
	hidden := ""
	b = newBench(t, func(out *dynamodb.QueryOutput) {
		out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool {
			return sortKey(it) == hidden
		})
	})
	return b, func(sk string) { hidden = sk }
}

// Interleaving: a query already returns the transactions of later turns, but not yet the transaction of an earlier
// turn. The number of later turns, the number of reads and the clock of the reader make no difference. A reader that
// continues receives the cancel when it becomes visible, and then continues after it.
func TestReadCancels_cancelBecomesVisibleLate_isReturned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ known, behind int64 }{{0, 1}, {1, 1}, {20, 1}, {3, 9}, {1, 30}, {70, 30}, {130, 70}} {
		for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
			b, hide := hiding(t)
			for id := range c.known {
				b.commit(b.turn(id+1, "known"))
			}
			b.commit(b.turn(0, ""))
			late := c.known + 1
			b.commit(b.turn(late, "late"))
			for id := range c.behind {
				b.commit(b.turn(late+id+1, "early"))
			}
			b.now = b.now.Add(ahead)
			hide(fmt.Sprintf("b#%010d", late+1))
			from := max(c.known, 1)
			for range 3 { // the turn stays invisible
				got, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, from)
				if err != nil || got.Of(late).Requested || !got.Of(late+c.behind).Requested {
					t.Fatalf("%+v: error %v, or the test does not hide the cancel", c, err)
				}
				from = next
			}
			hide("")
			got, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, from)
			if err != nil || got.Of(late).Reason != "late" {
				t.Errorf("%+v, reader's clock %v ahead: a read from segment %d misses the cancel, error %v", c, ahead,
					from, err)
			}
			if got, next, err = b.p.ReadCancels(t.Context(), b.head.ExecutionID, next); err != nil || len(got) > 0 ||
				next != b.head.Segment+1 {
				t.Errorf("%+v: next segment %d, %d further cancels, error %v", c, next, len(got), err)
			}
		}
	}
}

// ReadCancels reads again if a cancel is missing, so the caller receives a cancel that is invisible for a moment.
func TestReadCancels_cancelIsInvisibleForAMoment_isReadAgain(t *testing.T) {
	t.Parallel()
	hidden := 2
	b := newBench(t, func(out *dynamodb.QueryOutput) {
		if hidden--; hidden >= 0 {
			out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool {
				return sortKey(it) == "b#0000000001"
			})
		}
	})
	b.commit(b.turn(1, "first"))
	b.commit(b.turn(2, "second"))
	b.wantReasons(0, "first", "second")
}

// The first builds that wrote cancels of turns did not write the segment of the previous cancelling turn. Their items
// are read again for two minutes.
func TestReadCancels_itemsWithoutPredecessor_areReadAgainForTwoMinutes(t *testing.T) {
	t.Parallel()
	b, hide := hiding(t)
	b.unchained = true
	for id := range int64(12) {
		b.commit(b.turn(id+1, "early"))
	}
	b.unchained = false
	b.commit(b.turn(13, "chained"))
	hide("b#0000000002")
	c, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, 1)
	if err != nil || c.Of(2).Requested || !c.Of(3).Requested {
		t.Fatalf("%+v, error %v, or the test does not hide the cancel", c, err)
	}
	hide("")
	b.now = b.now.Add(time.Minute)
	b.wantReasons(next, "early", "early", "early")
	b.now = b.now.Add(time.Hour)
	if _, next, err = b.p.ReadCancels(t.Context(), b.head.ExecutionID, 1); err != nil || next != 14 {
		t.Errorf("next %d, %v; want 14", next, err)
	}
}

// During a deployment, a turn of the previous release commits between turns of this release. Its cancel is only in item
// c. A reader that continues before that turn needs one query and loses no cancel.
func TestReadCancels_turnOfPreviousReleaseInBetween_isNoGap(t *testing.T) {
	t.Parallel()
	queries := 0
	b := newBench(t, func(*dynamodb.QueryOutput) { queries++ })
	b.commit(b.turn(1, "first"))
	between := b.turn(2, "second")
	b.commit(b.turn(0, ""))
	b.block, _ = b.block.Add(2, between.Cancels) // as in the history
	b.put(mark(old("first", "second")))
	b.commit(b.turn(3, "third"))
	b.commit(b.turn(4, "fourth"))
	from := int64(1)
	for range 3 {
		queries = 0
		got, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, from)
		if err != nil || got.Of(2).Reason != "second" || got.Of(4).Reason != "fourth" || next != 2 || queries != 1 {
			t.Errorf("read from segment %d: %+v, next %d, error %v, %d queries", from, got, next, err, queries)
		}
		from = next
	}
	if _, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, 3); err != nil || next != 5 {
		t.Errorf("read from a later segment: next %d, error %v", next, err)
	}
}

// If a query returns only some of the items of a large turn, the items are read again.
func TestReadCancels_halfOfATurnIsVisible_isReadAgain(t *testing.T) {
	t.Parallel()
	hidden := 0
	b := newBench(t, func(out *dynamodb.QueryOutput) {
		if hidden > 0 {
			hidden--
			out.Items = out.Items[1:] // queries read backward, so this is the last part
		}
	})
	turn := b.turn(1, "first")
	for id := range int64(600) {
		turn.Cancels = append(turn.Cancels, provider.ActivityCancel{
			IDs: []history.Range{{First: id + 2, Last: id + 2}}, Reason: noise(id), At: b.now,
		})
	}
	b.commit(turn)
	hidden = 2
	b.wantReasons(0, "first", noise(0), noise(1))
	hidden = 3
	_, _, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, 0)
	if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable {
		t.Errorf("error %v, want a retryable error", err)
	}
}

// noise returns text that does not compress.
func noise(seed int64) string {
	b := make([]byte, 1<<10)
	x := uint64(seed)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte('0' + x%74)
	}
	return string(b)
}

// The cancels of turns expire 30 days after the deletion of their instance, like item c, for small and large instances.
func TestApplyRetention_cancelsOfTurns_expireWithTheInstance(t *testing.T) {
	t.Parallel()
	for name, turns := range map[string]int{"small": 3, "large": 150} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			for n := range turns {
				b.commit(b.turn(int64(n+1), "select_loser"))
			}
			end := b.turn(0, "")
			end.Events = append(end.Events, history.Event{
				ID: b.id + 2, Kind: history.OrchestrationCompleted, Time: b.now, Output: history.Payload("1"),
			})
			end.Retention = time.Hour
			b.commit(end)
			b.now = b.now.Add(72 * time.Hour)
			for id, err := range b.p.DueInstances(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.p.ApplyRetention(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			out, err := b.cloud.Table.Query(t.Context(), &dynamodb.QueryInput{
				TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":pk": &types.AttributeValueMemberS{Value: "x#" + b.head.ExecutionID},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			stays := 0
			for _, it := range out.Items {
				if it["ttl"] == nil {
					t.Errorf("%s has no ttl", sortKey(it))
				}
				if strings.HasPrefix(sortKey(it), "b#") {
					stays++
				}
			}
			if stays != turns {
				t.Errorf("the cancels of %d turns are left, want %d", stays, turns)
			}
			b.wantReasons(0, "select_loser", "select_loser", "select_loser")
			if c := b.wantReasons(1); c.Of(int64(turns+1)).Reason != "instance_deleted" {
				t.Errorf("%+v", c.Of(int64(turns+1)))
			}
		})
	}
}
