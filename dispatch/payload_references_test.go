package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// letter is the data of an event. It is large enough for a reference, and has characters that encoders change.
type letter struct {
	N    int
	Text string
}

func newLetter(n int) letter {
	return letter{n, strings.Repeat(fmt.Sprintf("<%d> & \u2028é ", n), 200)}
}

// collectInput is the input of an orchestration that receives letters in order, Each per execution, until it has All.
type collectInput struct{ Next, All, Each int }

// collectorRegistry returns a registry whose orchestration "sleeper" receives letters as events of a name.
func collectorRegistry(name string) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, h collectInput) (int, error) {
		for range h.Each {
			got, err := perdure.WaitForExternalEvent[letter](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			if got != newLetter(h.Next) {
				return 0, fmt.Errorf("got letter %d, want %d unchanged", got.N, h.Next)
			}
			if h.Next++; h.Next == h.All {
				return h.All, nil
			}
		}
		if _, err := perdure.CreateTimer(ctx, time.Minute).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, h)
	})
	return r
}

// post sends n letters.
func (h *hub) post(in provider.Instance, n int) {
	h.t.Helper()
	for i := range n {
		m := provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: fmt.Sprint("e-", i),
			Data: encoded(h.t, newLetter(i)),
		}
		h.send(m)
	}
}

// wantAll fails the test unless the instance has ended with all letters.
func (h *hub) wantAll(ctx context.Context, in provider.Instance, n int) {
	h.t.Helper()
	now := h.read(in)
	end, err := h.Provider.ReadTerminalEvent(ctx, now.ExecutionID)
	if err != nil || string(end.Output) != fmt.Sprint(n) {
		h.t.Fatalf("the instance is %s, ended with %s %s %v, %v", now.Status, end.Kind, end.Output, end.Error, err)
	}
	h.checkIdle()
}

// Continue-as-new copies unobserved events to the next execution by reference. A process crashes at each call. All
// letters arrive once, in order and unchanged, and history stores each letter once.
func TestReferences_crashAtAnyCallAcrossContinueAsNew_losesNothing(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			for n, more := int64(1), true; more && !t.Failed(); n++ {
				intercept, calls := simhub.CrashAt(n, after)
				o := simhub.Options{Registry: collectorRegistry("add"), Environments: 2, Intercept: intercept}
				inBubble(t, o, func(ctx context.Context, h *hub) {
					in := h.start("sleeper", collectInput{All: 7, Each: 2})
					h.post(in, 7)
					h.serveFor(time.Hour)
					h.wantAll(ctx, in, 7)
					h.wantStoredOnce(in, 7)
				})
				more = calls.Load() >= n
			}
		})
	}
}

// wantStoredOnce fails the test unless the segments of all executions contain each letter once.
func (h *hub) wantStoredOnce(in provider.Instance, n int) {
	h.t.Helper()
	inline := 0
	for x, err := range h.Provider.ListExecutions(h.t.Context(), in.InstanceID) {
		if err != nil {
			h.t.Fatal(err)
		}
		for _, e := range h.stored(x.ExecutionID) {
			e.EachExternalData(func(_ string, _ int, data *history.Payload) {
				if _, ok := data.Document(); ok {
					inline++
				}
			})
		}
	}
	if inline != n {
		h.t.Errorf("got %d letters in history, want %d", inline, n)
	}
}

// stored returns the history of an execution as stored, with its references.
func (h *hub) stored(executionID string) (events []history.Event) {
	h.t.Helper()
	out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + executionID},
			":sk": &ddbtypes.AttributeValueMemberS{Value: "h#"},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, it := range out.Items {
		more, err := history.Decode(segmentJSON(h.t, it))
		if err != nil {
			h.t.Fatal(err)
		}
		events = append(events, more...)
	}
	return events
}

// segmentJSON returns the events of a segment that has one part.
func segmentJSON(t *testing.T, it map[string]ddbtypes.AttributeValue) []byte {
	t.Helper()
	packed, ok := it["zstd"].(*ddbtypes.AttributeValueMemberB)
	if !ok {
		return []byte(text(it, "events"))
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	doc, err := d.DecodeAll(packed.Value, nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The turns that consume parked events refer to their data. Later executions also refer to it. A process crashes at
// each call.
func TestReferences_crashAtAnyCallWithParkedEvents_losesNothing(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			for n, more := int64(1), true; more && !t.Failed(); n++ {
				intercept, calls := simhub.CrashAt(n, after)
				inBubble(t, simhub.Options{Registry: collectorRegistry("plus"), Intercept: intercept},
					func(ctx context.Context, h *hub) {
						in := h.start("sleeper", collectInput{All: 7, Each: 2})
						h.passRecords(h.orchestrator(collectorRegistry("add"), "before"))
						h.post(in, 7)
						h.serveFor(time.Hour)
						if now := h.read(in); now.Status != provider.StatusBlocked {
							t.Fatalf("the instance is %s, want blocked", now.Status)
						}
						time.Sleep(24 * time.Hour)
						old := h.Orchestrators[0]
						h.Orchestrators[0] = h.orchestrator(collectorRegistry("add"), "fixed")
						if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
							t.Fatalf("the sweeper woke %d instances, %v; want 1", woken, err)
						}
						h.serveFor(time.Hour)
						h.wantAll(ctx, in, 7)
						h.wantStoredOnce(in, 7)
						old.Close()
					})
				more = calls.Load() >= n
			}
		})
	}
}

// A temporary failure to read referenced data fails the turn, which is retried. The instance is not blocked.
func TestReferences_readFails_turnIsRetried(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: collectorRegistry("add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", collectInput{All: 5, Each: 1})
		h.post(in, 5)
		var failures atomic.Int64
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			q, ok := c.Input.(*dynamodb.QueryInput)
			if !ok {
				return next()
			}
			// the query of the parts of one segment
			document := strings.HasSuffix(text(q.ExpressionAttributeValues, ":last"), "#999")
			if document && failures.Add(1) <= 40 {
				return errors.New("DynamoDB is away")
			}
			return next()
		})
		h.serveFor(24 * time.Hour)
		h.interfere(nil)
		if failures.Load() < 40 {
			t.Fatalf("got %d reads of referenced data, want at least 40", failures.Load())
		}
		h.wantAll(ctx, in, 5)
	})
}

// Time that a session spends on reading data does not count towards the turn limit of the code.
func TestReferences_readIsSlow_turnLimitIsUnaffected(t *testing.T) {
	t.Parallel()
	o := simhub.Options{Registry: collectorRegistry("add"), TurnTimeout: time.Second}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", collectInput{All: 8, Each: 4})
		h.post(in, 8)
		slow := slow(3 * time.Second)
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "Query" {
				return slow(ctx, c, next)
			}
			return next()
		})
		h.Cloud.ResetCounts()
		h.serveFor(time.Hour)
		h.interfere(nil)
		if n := h.Cloud.Counts()["SQS.ChangeMessageVisibilityBatch"]; n > 0 {
			t.Errorf("got %d failed turns, want none", n)
		}
		h.wantAll(ctx, in, 8)
	})
}

// Altered data blocks the instance. After the data is restored, the instance continues.
func TestReferences_dataIsAltered_instanceIsBlocked(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: collectorRegistry("add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", collectInput{All: 5, Each: 1})
		h.post(in, 5)
		h.serveFor(30 * time.Second)
		good := h.item("x#"+in.ExecutionID, "h#0000000001")
		bad := maps.Clone(good)
		delete(bad, "zstd")
		bad["events"] = &ddbtypes.AttributeValueMemberS{
			Value: strings.ReplaceAll(string(segmentJSON(t, good)), "é", "e"),
		}
		h.put(bad)
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeCorrupt {
			t.Fatalf("the instance is %s with diagnosis %+v, want blocked as corrupt", now.Status, now.Diagnosis)
		}
		h.put(good)
		h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
		h.serveFor(time.Hour)
		h.wantAll(ctx, in, 5)
	})
}

// put writes an item of the table.
func (h *hub) put(it map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	put := &dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}
	if _, err := h.Cloud.Table.PutItem(h.t.Context(), put); err != nil {
		h.t.Fatal(err)
	}
}

// A message that looks like a reference is plain data. It cannot make the engine read data of another instance.
func TestReferences_inAMessage_arePlainData(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (map[string]any, error) {
		return perdure.WaitForExternalEvent[map[string]any](ctx, "add").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		data := history.DataLocation{ExecutionID: "secret", Segment: 1, EventID: 3}.Refer([]byte(`"x"`))
		h.send(provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "e", Data: data,
		})
		h.turn(0)
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || !strings.Contains(string(end.Output), `"ref":"x#secret/1/3"`) {
			t.Errorf("ended with %s %s, %v, want the data of the message", end.Kind, end.Output, err)
		}
	})
}

// ReadHistory replaces references by their data.
func TestReferences_readHistory_showsTheData(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: collectorRegistry("add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", collectInput{All: 5, Each: 1})
		h.post(in, 5)
		h.serveFor(time.Hour)
		carried := 0
		for x, err := range h.Provider.ListExecutions(ctx, in.InstanceID) {
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range h.Provider.ReadHistory(ctx, in.InstanceID, x.ExecutionID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				e.EachExternalData(func(field string, _ int, data *history.Payload) {
					if doc, ok := data.Document(); !ok || !strings.Contains(string(doc), "é") {
						t.Errorf("execution %d, event %s: got data %.80s, want a letter", x.Number, e.String(), *data)
					}
					if field == history.LocationCarriedEvents {
						carried++
					}
				})
			}
		}
		if carried != 4+3+2+1 {
			t.Errorf("got %d carried events, want 10", carried)
		}
	})
}
