package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The state of a hub after a busy hour without sweeps.
const (
	startedInTheHour = 1_000_000
	lostWakes        = 2_000 // an earlier build has blocked the same number of instances
	unfinished       = 300   // unfinished deletions
	moved            = 500   // messages in the dead-letter queue
)

// renewerTimeout is the timeout of the renewer function in the stack.
const renewerTimeout = 60 * time.Second

// latencies returns the latency of a call. Pages are slow: a page of 1 MB takes 2.5 seconds, so that one sweep cannot
// read all instances of the hour.
func latencies(c simaws.Call) time.Duration {
	const perItem = 750 * time.Microsecond // an item has 300 bytes
	switch in := c.Input.(type) {
	case *dynamodb.QueryInput:
		items := int32(3_300)
		if aws.ToString(in.IndexName) == "byDue" {
			items = 0 // no instance is due
		}
		if in.Limit != nil {
			items = min(items, *in.Limit)
		}
		return 10*time.Millisecond + time.Duration(items)*perItem
	case *sqs.SendMessageBatchInput, *sqs.ReceiveMessageInput, *sqs.DeleteMessageBatchInput:
		return 15 * time.Millisecond
	default:
		return 8 * time.Millisecond
	}
}

// busyHour is a hub after a busy hour without sweeps.
type busyHour struct {
	*simhub.Hub

	t    *testing.T
	slow atomic.Bool
	ids  []string // IDs of instances that may be stuck
	// unerased makes deletions stop before they erase the history.
	unerased atomic.Bool
}

func (b *busyHour) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if put, ok := c.Input.(*dynamodb.PutItemInput); ok && b.unerased.Load() && put.Item["stub"] != nil {
		return context.DeadlineExceeded
	}
	if b.slow.Load() {
		select {
		case <-time.After(latencies(c)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return next()
}

// A million instances were started in an hour without sweeps, because the renewer was throttled. Each sweep has a
// minute, too little to read all instances of the hour. After ten sweeps no instance is stuck.
func TestSweep_millionStartsWithoutSweep_recoversWithinTenSweeps(t *testing.T) {
	shortrun.Skip(t)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the table takes a gigabyte, none of it garbage
	synctest.Test(t, func(t *testing.T) {
		b := &busyHour{t: t}
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "short", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			return n, nil
		})
		var err error
		if b.Hub, err = simhub.New(simhub.Options{Registry: r, Intercept: b.intercept}); err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		ctx := t.Context()
		b.simulateBusyHour(ctx)
		b.slow.Store(true)
		for tick := 1; ; tick++ {
			woken, took := b.tick(ctx)
			left := b.stuck(ctx)
			t.Logf("sweep %d: %v, woke %d; remaining: %s", tick, took.Round(time.Millisecond), woken, left)
			if left == (stuck{}) {
				break
			}
			if tick == 10 {
				t.Fatal("not recovered within ten sweeps")
			}
		}
	})
}

// tick runs one sweep like the renewer does, and then the functions until the next sweep.
func (b *busyHour) tick(ctx context.Context) (woken int, took time.Duration) {
	began := time.Now()
	invocation, stop := context.WithTimeout(ctx, renewerTimeout)
	defer stop()
	woken, err := b.Renewer.Sweep(invocation)
	if took = time.Since(began); err != nil || took >= renewerTimeout {
		b.t.Errorf("sweep: got error %v after %v", took, err)
	}
	b.ServeFor(ctx, 2*time.Minute-took)
	return woken, took
}

// stuck counts instances and messages that still need a sweep.
type stuck struct{ pending, blocked, deleting, moved int }

func (s stuck) String() string {
	return fmt.Sprintf("%d pending, %d blocked, %d deleting, %d moved", s.pending, s.blocked, s.deleting, s.moved)
}

func (b *busyHour) stuck(ctx context.Context) (s stuck) {
	b.slow.Store(false)
	defer b.slow.Store(true)
	for _, id := range b.ids {
		in, err := b.Provider.ReadInstance(ctx, id)
		switch {
		case errors.Is(err, provider.ErrNotFound):
		case err != nil:
			b.t.Fatal(err)
		case in.Status == provider.StatusPending:
			s.pending++
		case in.Status == provider.StatusBlocked:
			s.blocked++
		case in.Status == provider.StatusDeleting:
			s.deleting++
		}
	}
	time.Sleep(2 * time.Minute) // received dead letters are invisible for a while
	s.moved = b.remainingMoved(ctx)
	return s
}

// remainingMoved returns the number of dead letters that no sweep has processed: those without a reason.
func (b *busyHour) remainingMoved(ctx context.Context) (n int) {
	for m, err := range b.Provider.DeadLetteredRecords(ctx) {
		if err != nil || m.Queue != provider.QueueInbox {
			b.t.Fatal(m.Queue, err)
		}
		n++
	}
	time.Sleep(2 * time.Minute)
	return n
}

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// simulateBusyHour simulates the busy hour.
func (b *busyHour) simulateBusyHour(ctx context.Context) {
	b.deletions(ctx)
	template := b.template(ctx)
	for n := range moved {
		b.move(ctx, fmt.Sprintf("moved-%d", n))
	}
	b.putMany(ctx, template, startedInTheHour)
	time.Sleep(time.Hour)
	if n := b.stuck(ctx); n != (stuck{lostWakes + moved, lostWakes, unfinished, moved}) {
		b.t.Fatalf("got stuck instances %s", n)
	}
}

// deletions starts deletions that do not finish.
func (b *busyHour) deletions(ctx context.Context) {
	for n := range unfinished {
		b.start(ctx, fmt.Sprintf("deleted-%d", n))
	}
	b.ServeFor(ctx, time.Minute)
	b.unerased.Store(true)
	for n := range unfinished {
		if err := b.Provider.DeleteInstance(ctx, fmt.Sprintf("deleted-%d", n), false); err == nil {
			b.t.Fatal("the deletion completed despite the failure")
		}
	}
	b.unerased.Store(false)
}

func (b *busyHour) start(ctx context.Context, id string) {
	b.t.Helper()
	b.ids = append(b.ids, id)
	_, err := b.Provider.StartOrchestration(ctx, provider.Start{
		InstanceID: id, Name: "short", Input: history.Payload("1"), StartID: id,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// template returns the stored item of a completed instance.
func (b *busyHour) template(ctx context.Context) map[string]types.AttributeValue {
	b.start(ctx, "over")
	b.ServeFor(ctx, time.Minute)
	out, err := b.Cloud.Table.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("perdure"),
		Key:       map[string]types.AttributeValue{"pk": textValue("i#over"), "sk": textValue("i")},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Item
}

// move starts an instance and moves its wake message to the dead-letter queue, like SQS after a hundred deliveries.
func (b *busyHour) move(ctx context.Context, id string) {
	b.start(ctx, id)
	inbox := b.Provider.Config().InboxURL
	dead := b.Provider.Config().DeadLetters[provider.QueueInbox]
	got, err := b.Cloud.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &inbox, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"MessageGroupId"},
	})
	if err != nil || len(got.Messages) != 1 {
		b.t.Fatal(len(got.Messages), err)
	}
	m := got.Messages[0]
	group := m.Attributes["MessageGroupId"]
	if _, err = b.Cloud.Queues.SendMessage(ctx,
		&sqs.SendMessageInput{
			QueueUrl: &dead, MessageBody: m.Body, MessageGroupId: &group, MessageDeduplicationId: &id,
		}); err == nil {
		_, err = b.Cloud.Queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{
			QueueUrl: &inbox, ReceiptHandle: m.ReceiptHandle,
		})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// putMany simulates an hour in which completed instances are created. At regular intervals it creates an instance with
// a lost wake message, and a blocked instance.
func (b *busyHour) putMany(ctx context.Context, template map[string]types.AttributeValue, many int) {
	b.t.Helper()
	for n := range many {
		if n%(many/lostWakes) == 0 {
			time.Sleep(time.Hour / lostWakes)
			b.start(ctx, fmt.Sprint("pending-", n))
			b.start(ctx, fmt.Sprint("blocked-", n))
			b.loseWakes(ctx)
			b.block(ctx, fmt.Sprint("blocked-", n))
		}
		it := maps.Clone(template)
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		it["pk"], it["created"], it["updated"], it["gs"] = textValue(fmt.Sprint("i#i-", n)),
			textValue(fmt.Sprintf("%s#%08x", at, n)), textValue(at), textValue(fmt.Sprint(n%16))
		if _, err := b.Cloud.Table.PutItem(ctx,
			&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// loseWakes deletes all messages of the inbox.
func (b *busyHour) loseWakes(ctx context.Context) {
	inbox := b.Provider.Config().InboxURL
	got, err := b.Cloud.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &inbox, MaxNumberOfMessages: 10})
	if err == nil {
		err = b.Provider.DeleteRecords(ctx, provider.QueueInbox, simhub.Records(got.Messages)...)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *busyHour) block(ctx context.Context, id string) {
	in, err := b.Provider.ReadInstance(ctx, id)
	if err == nil {
		err = b.Provider.BlockInstance(ctx, id, in.ExecutionID, "an earlier build", &history.Failure{
			Type: history.TypeNondeterminism, Message: "m",
		})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
