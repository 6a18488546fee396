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

// bench is a provider, and an instance whose turns a test commits.
type bench struct {
	t     *testing.T
	cloud *simaws.Cloud
	p     *dynamo.Provider
	head  provider.Head
	id    int64
	block provider.CancelBlock
	now   time.Time
}

// blinkers change what queries see.
type blinkers struct {
	*simaws.Table

	hide func(out *dynamodb.QueryOutput)
}

func (b blinkers) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
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
	where := dynamo.Hub{Name: "h", Table: "perdure", InboxURL: b.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}), WorkQueues: map[string]string{}}
	var err error
	b.p, err = dynamo.New(where, dynamo.Clients{Table: blinkers{b.cloud.Table, hide}, Queues: b.cloud.Queues}, dynamo.WithClock(func() time.Time { return b.now }))
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

// turn is the next one, which cancels an activity for a reason; none for the id 0.
func (b *bench) turn(id int64, reason string) *provider.Turn {
	t := &provider.Turn{InstanceID: "a", Head: b.head, Events: []history.Event{{ID: b.id + 1, Kind: history.TurnStarted, Time: b.now, Version: "1"}}}
	if id > 0 {
		t.Cancels = provider.Cancels{{IDs: []history.Range{{First: id, Last: id}}, Reason: reason, At: b.now}}
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

// put writes an item of the execution as it is.
func (b *bench) put(it map[string]types.AttributeValue) {
	b.t.Helper()
	it["pk"] = &types.AttributeValueMemberS{Value: "x#" + b.head.ExecutionID}
	if _, err := b.cloud.Table.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		b.t.Fatal(err)
	}
}

// wantReasons wants activities 1, 2, … cancelled for these reasons, whoever reads from a segment.
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

// old is a record as the release before writes it: whole, with each turn that cancels.
func old(reasons ...string) string {
	var entries []map[string]any
	for i, reason := range reasons {
		entries = append(entries, map[string]any{"ids": [][2]int{{i + 1, i + 1}}, "reason": reason, "at": "2026-11-22T12:00:00Z"})
	}
	doc, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(doc)
}

func mark(doc string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"sk": &types.AttributeValueMemberS{Value: "c"}, "cancels": &types.AttributeValueMemberS{Value: doc}}
}

func sortKey(it map[string]types.AttributeValue) string {
	if v, ok := it["sk"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// A deployment half way, or a rollback: turns of the release before write c whole, from history, between turns of this one.
func TestRecordsOfTheReleaseBeforeAreReadWithThoseOfThisOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.commit(b.turn(0, "")) // segment 1, of the release before
	b.put(mark(old("first")))
	b.wantReasons(0, "first", "")
	b.commit(b.turn(2, "second"))
	b.wantReasons(0, "first", "second", "")
	b.wantReasons(2, "first", "second", "")
	b.commit(b.turn(0, "")) // segment 3, again
	b.put(mark(old("first", "second", "third")))
	b.commit(b.turn(3, "too late"))
	b.commit(b.turn(4, "fourth"))
	b.wantReasons(0, "first", "second", "third", "fourth", "")
	b.wantReasons(5, "first", "second", "third", "fourth", "")

	// The release before deletes: it knows of c alone.
	b.put(mark(strings.TrimSuffix(old("first", "second", "third"), "]") + `,{"open":true,"reason":"instance_deleted","at":"2026-11-22T12:00:00Z"}]`))
	if c := b.wantReasons(0, "first", "second", "third", "fourth", "instance_deleted"); !c.Of(4).Deleted || !c.Of(99).Deleted {
		t.Errorf("nobody is told that the instance is deleted: %+v", c)
	}
}

// A large record of the release before lies in parts.
func TestALargeRecordOfTheReleaseBeforeIsRead(t *testing.T) {
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
		b.put(map[string]types.AttributeValue{"sk": &types.AttributeValueMemberS{Value: sk}, "zstd": &types.AttributeValueMemberB{Value: part}})
	}
	b.put(map[string]types.AttributeValue{"sk": &types.AttributeValueMemberS{Value: "c"}, "parts": &types.AttributeValueMemberN{Value: "2"}})
	b.commit(b.turn(3001, "of this release"))
	b.wantReasons(0, append(reasons, "of this release", "")...)
	b.wantReasons(1, append(reasons, "of this release", "")...)
	if err := b.p.DeleteInstance(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	if c := b.wantReasons(0, append(reasons, "of this release", "instance_deleted")...); !c.Of(7).Deleted {
		t.Error("nobody is told that the instance is deleted")
	}
}

// Interleaving: of the transaction of one turn a query sees nothing yet, for a moment, and that of the next turn already. Whoever reads on
// sees the first one later.
func TestWhatIsSeenLateIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	hidden := ""
	b := newBench(t, func(out *dynamodb.QueryOutput) {
		out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool { return sortKey(it) == hidden })
	})
	b.commit(b.turn(1, "first"))
	b.commit(b.turn(2, "second"))
	b.commit(b.turn(3, "third"))
	hidden = "b#0000000002"
	c, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, 1)
	if err != nil || c.Of(2).Requested || !c.Of(3).Requested {
		t.Fatalf("%+v, %v: the test hides nothing", c, err)
	}
	hidden = ""
	b.now = b.now.Add(time.Second)
	b.wantReasons(next, "first", "second", "third")

	b.now = b.now.Add(time.Hour) // no moment is as long: it is not read again for ever
	if _, next, err = b.p.ReadCancels(t.Context(), b.head.ExecutionID, 1); err != nil || next != 4 {
		t.Errorf("next %d, %v; want 4", next, err)
	}
	if c, next, err = b.p.ReadCancels(t.Context(), b.head.ExecutionID, next); err != nil || next != 4 || len(c) != 0 {
		t.Errorf("%+v, next %d, %v; want none, and 4", c, next, err)
	}
}

// Interleaving: what is seen late comes right behind what is long known, or is the first that is decided at all. It is heard all the same.
func TestWhatIsSeenLateBehindWhatIsKnownIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	for _, known := range []int64{0, 1, 20} {
		hidden := fmt.Sprintf("b#%010d", known+1)
		b := newBench(t, func(out *dynamodb.QueryOutput) {
			out.Items = slices.DeleteFunc(out.Items, func(it map[string]types.AttributeValue) bool { return sortKey(it) == hidden })
		})
		for id := range known {
			b.commit(b.turn(id+1, "known"))
		}
		b.now = b.now.Add(time.Hour)
		b.commit(b.turn(known+1, "late"))
		b.commit(b.turn(known+2, "early"))
		c, next, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, max(known, 1))
		if err != nil || c.Of(known+1).Requested || !c.Of(known+2).Requested {
			t.Fatalf("%+v, %v: the test hides nothing", c, err)
		}
		hidden = ""
		if c, _, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, next); err != nil || !c.Of(known+1).Requested {
			t.Errorf("behind %d: read from %d on, %v: a worker never sees it", known, next, err)
		}
	}
}

// Half of the items of a large turn are seen: it is read again.
func TestHalfATurnOfCancelsIsReadAgain(t *testing.T) {
	t.Parallel()
	hidden := 0
	b := newBench(t, func(out *dynamodb.QueryOutput) {
		if hidden > 0 {
			hidden--
			out.Items = out.Items[1:] // backwards: the last part
		}
	})
	turn := b.turn(1, "first")
	for id := range int64(600) {
		turn.Cancels = append(turn.Cancels, provider.ActivityCancel{IDs: []history.Range{{First: id + 2, Last: id + 2}}, Reason: noise(id), At: b.now})
	}
	b.commit(turn)
	hidden = 2
	b.wantReasons(0, "first", noise(0), noise(1))
	hidden = 3
	_, _, err := b.p.ReadCancels(t.Context(), b.head.ExecutionID, 0)
	if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable {
		t.Errorf("%v: want an error that is worth repeating", err)
	}
}

// noise does not compress.
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

// What turns have cancelled goes 30 days after its instance, as c does, whichever way it is deleted.
func TestWhatTurnsHaveCancelledGoesWithItsInstance(t *testing.T) {
	t.Parallel()
	for name, turns := range map[string]int{"small": 3, "large": 150} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			for n := range turns {
				b.commit(b.turn(int64(n+1), "select_loser"))
			}
			end := b.turn(0, "")
			end.Events = append(end.Events, history.Event{ID: b.id + 2, Kind: history.OrchestrationCompleted, Time: b.now, Output: history.Payload("1")})
			end.Retention = time.Hour
			b.commit(end)
			b.now = b.now.Add(72 * time.Hour)
			for id, err := range b.p.DueInstances(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.p.RetireInstance(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			out, err := b.cloud.Table.Query(t.Context(), &dynamodb.QueryInput{
				TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "x#" + b.head.ExecutionID}},
			})
			if err != nil {
				t.Fatal(err)
			}
			stays := 0
			for _, it := range out.Items {
				if it["ttl"] == nil {
					t.Errorf("%s stays for ever", sortKey(it))
				}
				if strings.HasPrefix(sortKey(it), "b#") {
					stays++
				}
			}
			if stays != turns {
				t.Errorf("of %d turns it is left what they cancelled, of %d", stays, turns)
			}
			b.wantReasons(0, "select_loser", "select_loser", "select_loser")
			if c := b.wantReasons(1); c.Of(int64(turns+1)).Reason != "instance_deleted" {
				t.Errorf("%+v", c.Of(int64(turns+1)))
			}
		})
	}
}
