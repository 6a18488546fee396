package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// long is an instance of many turns, on a hub that rolls up runs of at least four segments.
type long struct {
	*dynamo.Provider

	// plain reads the same table without rollups.
	plain *dynamo.Provider
	cloud *simaws.Cloud
	in    provider.Instance
	head  provider.Head
	next  int64
	log   bytes.Buffer
	fault simaws.Interceptor
	// queried counts the items that queries have returned.
	queried int
}

type counting struct {
	dynamo.TableAPI

	items *int
}

func (c counting) Query(
	ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	out, err := c.TableAPI.Query(ctx, in, o...)
	if err == nil {
		*c.items += len(out.Items)
	}
	return out, err
}

func newLong(tb testing.TB) *long {
	tb.Helper()
	l := &long{next: 2}
	l.cloud = simaws.New(simaws.WithTable(table()),
		simaws.WithInterceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if l.fault != nil {
				return l.fault(ctx, c, next)
			}
			return next()
		}))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: l.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}
	open := func(rollup int64) *dynamo.Provider {
		p, err := dynamo.New(where, dynamo.Clients{Table: counting{l.cloud.Table, &l.queried}, Queues: l.cloud.Queues},
			func(s *dynamoknobs.Settings) {
				s.Rollup = rollup
			}, dynamo.WithLogger(slog.New(slog.NewTextHandler(&l.log, nil))))
		if err != nil {
			tb.Fatal(err)
		}
		return p
	}
	l.Provider, l.plain = open(4), open(0)
	var err error
	if l.in, err = l.StartOrchestration(tb.Context(),
		provider.Start{InstanceID: "a", Name: "order", StartID: "s"}); err != nil {
		tb.Fatal(err)
	}
	l.head = provider.Head{ExecutionID: l.in.ExecutionID}
	return l
}

// turn commits a segment with one event of the given size.
func (l *long) turn(tb testing.TB, kind history.Kind, size int) {
	tb.Helper()
	e := history.Event{ID: l.next, Kind: kind, Time: time.Unix(l.next, 0).UTC()}
	if kind == history.SideEffectRecorded {
		e.Value = history.Payload(`"` + incompressible(size, l.next) + strings.Repeat("x", 400) + `"`)
	}
	turn := &provider.Turn{
		InstanceID: "a", Head: l.head, Watermark: provider.Position{Inbox: "in", Sequence: fmt.Sprint(l.next)},
		Events: []history.Event{e},
	}
	if _, err := l.AckOrchestrationItem(tb.Context(), turn); err != nil {
		tb.Fatal(err)
	}
	l.head, l.next = turn.After(), l.next+1
}

func (l *long) turns(tb testing.TB, n int) {
	tb.Helper()
	for range n {
		l.turn(tb, history.SideEffectRecorded, 10)
	}
}

// incompressible returns a text that compresses badly.
func incompressible(size int, seed int64) string {
	b, x := make([]byte, size), uint32(seed)*2654435761
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>26]
	}
	return string(b)
}

// read reads the instance without a cache.
func (l *long) read(tb testing.TB, p *dynamo.Provider, c provider.Consistency) *provider.Orchestration {
	tb.Helper()
	it := &provider.OrchestrationItem{
		InstanceID: "a",
		Messages: []provider.InboxMessage{
			{Message: provider.Message{InstanceID: "a", ExecutionID: l.in.ExecutionID}},
		},
	}
	o, err := p.ReadOrchestration(tb.Context(), it, c)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// same reads the instance with and without rollups, and compares the results.
func (l *long) same(tb testing.TB, c provider.Consistency) {
	tb.Helper()
	want, got := l.read(tb, l.plain, provider.Strong), l.read(tb, l.Provider, c)
	if want.Verified = got.Verified; !reflect.DeepEqual(want, got) { // cmp would be slow on megabytes of noise
		tb.Errorf("the history with rollups differs: %d segments up to %+v, want %d up to %+v", len(got.Segments),
			got.Head, len(want.Segments), want.Head)
	}
}

func (l *long) query(tb testing.TB, prefix string) []map[string]types.AttributeValue {
	tb.Helper()
	out, err := l.cloud.Table.Query(tb.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: "x#" + l.in.ExecutionID},
			":sk": &types.AttributeValueMemberS{Value: prefix},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out.Items
}

// rollups returns the sort keys of the rollups, each with the last segment.
func (l *long) rollups(tb testing.TB) (keys []string) {
	tb.Helper()
	for _, it := range l.query(tb, "g#") {
		sk, _ := it["sk"].(*types.AttributeValueMemberS)
		last, _ := it["last"].(*types.AttributeValueMemberN)
		keys = append(keys, strings.TrimLeft(strings.TrimPrefix(sk.Value, "g#"), "0")+"-"+last.Value)
	}
	return keys
}

func (l *long) put(tb testing.TB, it map[string]types.AttributeValue) {
	tb.Helper()
	if _, err := l.cloud.Table.PutItem(tb.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		tb.Fatal(err)
	}
}

func wantRollups(tb testing.TB, l *long, want ...string) {
	tb.Helper()
	if diff := cmp.Diff(want, l.rollups(tb)); diff != "" {
		tb.Errorf("rollups (-want +got)\n%s", diff)
	}
}

// A read of a run of at least four segments writes the rollup of the run. The next read uses the rollup and the
// segments after it.
func TestRollup_manyTurnsAreRead_isWrittenAndReadNextTime(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 6) // h#0 to h#6: the first four are never rolled up
	l.same(t, provider.Eventual)
	wantRollups(t, l)
	l.turns(t, 1)
	l.same(t, provider.Eventual)
	wantRollups(t, l, "4-7")
	l.turns(t, 9)
	l.same(t, provider.Strong)
	wantRollups(t, l, "4-7", "8-16")

	l.turns(t, 1)
	l.queried = 0
	l.read(t, l.Provider, provider.Eventual)
	if l.queried != 4+2+2 { // the last segment of a rollup is read again
		t.Errorf("a cold read reads %d items, want 8", l.queried)
	}
}

// A rollup of large segments would be no smaller than the segments.
func TestRollup_largeTurns_areNotRolledUp(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 8)
	l.turn(t, history.SideEffectRecorded, 700<<10) // several parts
	l.turns(t, 3)
	l.turn(t, history.SideEffectRecorded, 8<<10)
	l.turns(t, 5)
	l.same(t, provider.Eventual)
	wantRollups(t, l, "4-8", "14-18")
	l.turns(t, 5)
	l.same(t, provider.Eventual)
	wantRollups(t, l, "4-8", "14-18", "19-23")
	l.same(t, provider.Strong)
}

// A rollup of payloads that do not compress would cost more than it saves.
func TestRollup_incompressiblePayloads_areNotRolledUp(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	for range 12 {
		l.turn(t, history.SideEffectRecorded, 3<<10)
	}
	l.same(t, provider.Eventual)
	wantRollups(t, l)
}

func TestRollup_endedExecution_isNotRolledUp(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 12)
	l.turn(t, history.OrchestrationCompleted, 0)
	l.same(t, provider.Eventual)
	wantRollups(t, l)
}

// A copy of a table that was made item by item may have a rollup without its segments. The segments are authoritative.
func TestRollup_lastSegmentIsMissing_isIgnored(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 10)
	l.same(t, provider.Eventual)
	segments := l.query(t, "h#")
	l.turns(t, 10)
	l.same(t, provider.Eventual)
	wantRollups(t, l, "4-10", "11-20")
	for _, it := range l.query(t, "h#")[len(segments):] {
		if _, err := l.cloud.Table.DeleteItem(t.Context(),
			&dynamodb.DeleteItemInput{
				TableName: aws.String("perdure"), Key: map[string]types.AttributeValue{"pk": it["pk"], "sk": it["sk"]},
			}); err != nil {
			t.Fatal(err)
		}
	}
	l.same(t, provider.Eventual)
	if o := l.read(t, l.Provider, provider.Strong); o.Head.Segment != 10 {
		t.Errorf("head has segment %d, want 10", o.Head.Segment)
	}
}

func TestRollup_damaged_isIgnored(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(it map[string]types.AttributeValue){
		"no segments": func(it map[string]types.AttributeValue) { delete(it, "zstd") },
		"no zstd": func(it map[string]types.AttributeValue) {
			it["zstd"] = &types.AttributeValueMemberB{Value: []byte("x")}
		},
		"another length": func(it map[string]types.AttributeValue) {
			it["last"] = &types.AttributeValueMemberN{Value: "9"}
		},
		"no number": func(it map[string]types.AttributeValue) {
			it["sk"] = &types.AttributeValueMemberS{Value: "g#0000000005x"}
		},
	} {
		l := newLong(t)
		l.turns(t, 10)
		l.same(t, provider.Eventual)
		it := l.query(t, "g#")[0]
		damage(it)
		l.put(t, it)
		l.same(t, provider.Eventual)
		if name != "no number" && !strings.Contains(l.log.String(), logevent.RollupUnreadable) {
			t.Errorf("%s: no log line:\n%s", name, l.log.String())
		}
	}
}

// A deletion marks the first segment before it lists the items. A reader that is suspended in the meantime does not
// write its rollup afterwards.
func TestRollup_instanceIsBeingDeleted_isNotWritten(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 10)
	l.fault = func(ctx context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && in.TransactItems[0].Put != nil &&
			in.TransactItems[0].Put.Item["last"] != nil {
			l.fault = nil
			start := l.query(t, "h#0000000000")[0]
			start["stub"] = &types.AttributeValueMemberS{Value: "now"}
			l.put(t, start)
		}
		return next()
	}
	l.read(t, l.Provider, provider.Strong)
	if l.fault != nil {
		t.Error("the read did not try to write a rollup")
	}
	wantRollups(t, l)
	if l.log.Len() > 0 {
		t.Errorf("unexpected log lines:\n%s", l.log.String())
	}
}

func TestDeleteInstance_rollups_areDeleted(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 10)
	l.same(t, provider.Eventual)
	wantRollups(t, l, "4-10")
	l.turn(t, history.OrchestrationCompleted, 0)
	if err := l.DeleteInstance(t.Context(), "a", false); err != nil {
		t.Fatal(err)
	}
	wantRollups(t, l)
}

// After throttling, no rollup is written for a minute. The reads succeed.
func TestRollup_tableThrottles_pausesForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLong(t)
		l.turns(t, 10)
		tried := 0
		l.fault = func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" {
				tried++
				return &types.ProvisionedThroughputExceededException{}
			}
			return next()
		}
		for range 20 {
			l.same(t, provider.Eventual)
			time.Sleep(6 * time.Second)
		}
		if warnings := strings.Count(l.log.String(), logevent.RollupWriteFailed); tried != 2 || warnings != 2 {
			t.Errorf("%d tries in two minutes, with %d log lines", tried, warnings)
		}
		l.fault = func(ctx context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		}
		time.Sleep(time.Minute)
		begun := time.Now()
		if l.same(t, provider.Eventual); time.Since(begun) > time.Second {
			t.Errorf("a hanging write delays a read by %v", time.Since(begun))
		}
		l.fault = nil
		time.Sleep(time.Minute)
		l.same(t, provider.Eventual)
		wantRollups(t, l, "4-10")
	})
}

// Random commits and reads, including stale reads, result in the same history with and without rollups.
func TestRollup_anyCommitsAndReads_historyIsUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := newLong(t)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				l.turn(t, history.SideEffectRecorded, rapid.SampledFrom([]int{5 << 10, 800 << 10}).Draw(rt, "size"))
			case 1, 2, 3:
				l.read(t, l.Provider,
					rapid.SampledFrom([]provider.Consistency{provider.Eventual, provider.Strong}).Draw(rt,
						"consistency"))
			case 4:
				l.cloud.Table.Lag(rapid.IntRange(0, 12).Draw(rt, "lag"))
				l.read(t, l.Provider, provider.Eventual)
				l.cloud.Table.Lag(0)
			default:
				l.turns(t, rapid.IntRange(1, 9).Draw(rt, "turns"))
			}
		}
		l.same(t, provider.Eventual)
		l.same(t, provider.Strong)
		if t.Failed() {
			rt.FailNow()
		}
	})
}
