package engine_test

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// countingQueues accepts all messages, and counts them by message group.
type countingQueues struct {
	*simaws.Queues

	mu     sync.Mutex
	groups map[string]int
}

// SendMessageBatch implements the queue client of the provider.
func (q *countingQueues) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	time.Sleep(15 * time.Millisecond)
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for i := range in.Entries {
		q.groups[aws.ToString(in.Entries[i].MessageGroupId)]++
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{
			Id: in.Entries[i].Id, SequenceNumber: aws.String("1"),
		})
	}
	return out, nil
}

// A million instances were started in an hour, and all wake messages were lost. Ten sweeps of a minute wake each
// instance, even though no turn runs in the meantime. No instance is woken so often that the backlog grows.
func TestSweep_millionPendingInstances_areWokenWithinTenSweeps(t *testing.T) {
	shortrun.Skip(t)
	const pending = 1_000_000
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the table takes a gigabyte, none of it garbage
	synctest.Test(t, func(t *testing.T) {
		slow := false
		cloud := simaws.New(simaws.WithTable(simaws.TableConfig{
			Name: "perdure", PartitionKey: "pk", SortKey: "sk",
			Indexes: []simaws.Index{
				{Name: "byCreation", PartitionKey: "gs", SortKey: "created", Include: []string{"status", "updated"}},
				{Name: "byAttention", PartitionKey: "attention", SortKey: "updated", Include: []string{}},
				{Name: "byDue", PartitionKey: "due", SortKey: "created", Include: []string{}},
			},
		}), simaws.WithInterceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if slow {
				time.Sleep(latencies(c))
			}
			return next()
		}))
		queues := &countingQueues{Queues: cloud.Queues, groups: map[string]int{}}
		where := dynamo.HubConfig{
			Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
			TimersURL: cloud.Queues.Create("timers", simaws.QueueConfig{}),
		}
		p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: queues})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.StartOrchestration(t.Context(),
			provider.Start{InstanceID: "i", Name: "order", StartID: "s", Input: history.Payload("1")}); err != nil {
			t.Fatal(err)
		}
		out, err := cloud.Table.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("perdure"), Key: item{"pk": str("i#i"), "sk": str("i")},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for n := range pending {
			it := maps.Clone(out.Item)
			at := began.Add(time.Duration(n) * time.Hour / pending).UTC().Format("2006-01-02T15:04:05.000Z")
			it["pk"], it["created"], it["updated"], it["gs"] = str(fmt.Sprint("i#i-", n)),
				str(fmt.Sprintf("%s#%08x", at, n)), str(at), str(fmt.Sprint(n%16))
			if _, err := cloud.Table.PutItem(t.Context(),
				&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour + 3*time.Minute)
		clear(queues.groups)
		slow = true
		keeper := must(dispatch.NewRenewer(p, nil))
		for look := 1; len(queues.groups) < pending+1; look++ {
			if look > 10 {
				t.Fatalf("after ten sweeps: got %d of %d instances woken", len(queues.groups), pending)
			}
			started := time.Now()
			ctx, stop := context.WithTimeout(t.Context(), renewerTimeout)
			woken, err := keeper.Sweep(ctx)
			stop()
			if err != nil {
				t.Error(err)
			}
			t.Logf("sweep %d: %v, %d wakes; %d of %d instances woken", look, time.Since(started).Round(time.Second),
				woken, len(queues.groups), pending)
			time.Sleep(2*time.Minute - time.Since(started))
		}
		most, total := 0, 0
		for _, n := range queues.groups {
			most, total = max(most, n), total+n
		}
		t.Logf("%d wakes for %d instances, %d at most for one", total, pending, most)
		if most > 5 {
			t.Errorf("got %d wakes of one instance", most)
		}
	})
}
