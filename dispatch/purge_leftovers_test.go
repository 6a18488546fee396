package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// sentMessage is a message that was sent to a queue.
type sentMessage struct {
	url         string
	body, group string
}

// trafficLog records all sent messages and the partition keys of all writes.
type trafficLog struct {
	mu   sync.Mutex
	sent []sentMessage
	keys map[string]bool
}

func (p *trafficLog) note(_ context.Context, c simaws.Call, next func() error) error {
	p.mu.Lock()
	if p.keys == nil {
		p.keys = map[string]bool{}
	}
	switch in := c.Input.(type) {
	case *dynamodb.PutItemInput:
		p.keys[text(in.Item, "pk")] = true
	case *dynamodb.UpdateItemInput:
		p.keys[text(in.Key, "pk")] = true
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			if w.Put != nil {
				p.keys[text(w.Put.Item, "pk")] = true
			}
			if w.Update != nil {
				p.keys[text(w.Update.Key, "pk")] = true
			}
		}
	case *sqs.SendMessageBatchInput:
		for i := range in.Entries {
			p.sent = append(p.sent, sentMessage{
				*in.QueueUrl, *in.Entries[i].MessageBody,
				aws.ToString(in.Entries[i].MessageGroupId),
			})
		}
	}
	p.mu.Unlock()
	return next()
}

// again resends all messages, because SQS may redeliver them and an operator may resend dead letters.
func (h *hub) again(sent []sentMessage) {
	h.t.Helper()
	for i, s := range sent {
		in := &sqs.SendMessageBatchInput{
			QueueUrl: &s.url,
			Entries:  []sqstypes.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: &s.body}},
		}
		if s.group != "" {
			in.Entries[0].MessageGroupId, in.Entries[0].MessageDeduplicationId = &s.group,
				aws.String(fmt.Sprint("again-", i, time.Now().UnixNano()))
		}
		if _, err := h.Cloud.Queues.SendMessageBatch(h.t.Context(), in); err != nil {
			h.t.Fatal(err)
		}
	}
}

// wantOnlyExpiringItems fails the test unless every remaining item has a TTL, and only the given instances still exist.
func (h *hub) wantOnlyExpiringItems(p *trafficLog, alive ...string) {
	h.t.Helper()
	keep := map[string]bool{}
	for _, id := range alive {
		keep["i#"+id] = true
		keep["x#"+h.read(provider.Instance{InstanceID: id}).ExecutionID] = true
	}
	kinds := map[string]int{}
	for key := range p.keys {
		if key == "hub" || keep[key] {
			continue
		}
		out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": textValue(key)},
		})
		if err != nil || len(out.LastEvaluatedKey) > 0 {
			h.t.Fatal(key, err)
		}
		for _, it := range out.Items {
			pk, sk := text(it, "pk"), text(it, "sk")
			kind, _, _ := strings.Cut(sk, "#")
			kinds[pk[:1]+" "+kind]++
			if it["ttl"] == nil {
				h.t.Errorf("%s %s never expires: %v", pk, sk, it)
			}
			if it["events"] != nil || it["zstd"] != nil || it["details"] != nil || sk == "i" && it["deleted"] == nil {
				h.t.Errorf("%s %s still has data: %v", pk, sk, it)
			}
		}
	}
	h.t.Logf("remaining items: %v", kinds)
}

// everyKindRegistry returns a registry with all kinds of orchestrations.
func everyKindRegistry() *perdure.Registry {
	r := withRetentions()
	perdure.AddActivity(r, "beats", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			perdure.Heartbeat(ctx, i)
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-time.After(2 * time.Second):
			}
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "beating", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "beats", n).Await(ctx)
	})
	perdure.AddOrchestration(r, "broken", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		_, err := perdure.CallActivityByName[int](ctx, "flaky", 1000,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour})).Await(ctx)
		return n, err
	})
	return r
}

// startEveryKind starts an instance of each kind. Some end, some wait, and some are in the middle of a step.
func (h *hub) startEveryKind(n int) (ids []string) {
	h.t.Helper()
	for _, k := range []struct {
		name  string
		input any
	}{
		{"nothing", 1},
		{"chain", 3},
		{"fan", 30},
		{"retries", 3},
		{"broken", 1},
		{"timer", time.Hour},
		{"timer", 400 * time.Hour},
		{"statuses", 3},
		{"periodic", 2},
		{"sums", 0},
		{"beating", 4},
		{"beating", 4000},
		{"first-of-two", 1},
		{"then-waits", 3},
		{"kept", 1},
		{"no-queue", 1},
	} {
		id := fmt.Sprintf("%s-%d-%d", k.name, len(ids), n)
		in := h.begin(id, k.name, k.input)
		if k.name == "sums" || k.name == "then-waits" {
			h.raise(in, "add", 1)
		}
		ids = append(ids, id)
	}
	blocked := h.begin(fmt.Sprint("blocked-", n), "sums", 0)
	why := &history.Failure{Type: history.TypeCorrupt, Message: "m"}
	if err := h.Provider.BlockInstance(h.t.Context(), blocked.InstanceID, blocked.ExecutionID, "another",
		why); err != nil {
		h.t.Fatal(err)
	}
	return append(ids, blocked.InstanceID)
}

// A job purges every kind of instance: ended, waiting, blocked, or in the middle of a step. Then every message, work
// item and timer is redelivered, at once and weeks later. Only items with a TTL remain. No instance exists again, even
// partially, and the new incarnation of a waiting instance is unaffected.
func TestPurge_messagesArriveLate_leavesOnlyExpiringItems(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{0, time.Minute, 3 * time.Hour} {
		t.Run(later.String(), func(t *testing.T) {
			t.Parallel()
			var p trafficLog
			inBubble(t, simhub.Options{Registry: everyKindRegistry()}, func(_ context.Context, h *hub) {
				h.interfere(p.note)
				h.startEveryKind(0)
				h.serveFor(later)
				time.Sleep(time.Millisecond)
				j := h.startJob(admin.JobRequest{Operation: admin.OperationPurge, All: true, Force: true})
				for range 10 {
					if j = h.look(j); j.Ended() {
						break
					}
				}
				if j.Done != j.Matched || !j.Ended() {
					t.Errorf("got job %+v, want ended with all matches done", j)
				}
				restarted, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{
					InstanceID: "chain-1-0", Name: "sums", Input: encoded(t, 0), StartID: "another",
				})
				if err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				for _, after := range []time.Duration{0, time.Hour, 20 * days} {
					time.Sleep(after)
					h.again(slices.Clip(p.sent))
					h.serveFor(3 * time.Hour)
				}
				if now := h.read(restarted); now.Status != provider.StatusRunning || now.StartID != "another" {
					t.Errorf("new incarnation: got %+v, want running", now)
				}
				h.wantOnlyExpiringItems(&p, restarted.InstanceID)
			})
		})
	}
}

// A retention deletes every kind of instance. Every message, work item and timer is redelivered, at once and weeks
// later. Only items with a TTL remain.
func TestRetention_messagesArriveLate_leavesOnlyExpiringItems(t *testing.T) {
	t.Parallel()
	var p trafficLog
	inBubble(t, simhub.Options{Registry: everyKindRegistry(), Retention: days}, func(_ context.Context, h *hub) {
		h.interfere(p.note)
		ids := h.startEveryKind(0)
		h.serveFor(20 * time.Hour)
		for _, id := range ids { // terminate instances that are still running
			if in, err := h.Provider.ReadInstance(h.t.Context(), id); err == nil && !in.Status.Terminal() {
				if err := client.New(h.Provider).Terminate(h.t.Context(), id, ""); err != nil {
					t.Error(id, err)
				}
			}
		}
		h.serveFor(time.Hour)
		for range 4 {
			time.Sleep(days)
			h.watch()
		}
		for _, after := range []time.Duration{0, 20 * days} {
			time.Sleep(after)
			h.again(slices.Clip(p.sent))
			h.serveFor(3 * time.Hour)
		}
		h.wantOnlyExpiringItems(&p, "kept-14-0")
	})
}
