package dynamo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// Interleaving: a client cancels instances while writes of notes hang. The messages are sent within a second, for any
// number of instances.
func TestR20_noteHangs_messageIsSentWithinASecond(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 10} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hang := func(ctx context.Context, c simaws.Call, next func() error) error {
					if _, put := c.Input.(*dynamodb.PutItemInput); put {
						<-ctx.Done()
						return ctx.Err()
					}
					return next()
				}
				cloud := simaws.New(simaws.WithTable(table()), simaws.WithInterceptor(hang))
				where := dynamo.HubConfig{
					Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
					WorkQueues: map[string]string{},
				}
				p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
				if err != nil {
					t.Fatal(err)
				}
				var ms []provider.Message
				for i := range instances {
					ms = append(ms, provider.Message{
						Kind: provider.MessageCancel, InstanceID: fmt.Sprint("i", i), Reason: "requested",
					})
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				began := time.Now()
				if err := p.EnqueueForOrchestrator(ctx, ms...); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the call took %v, want at most 1s", took)
				}
				if n := cloud.Counts()["SQS.SendMessageBatch"]; n != 1 {
					t.Errorf("%d sends, want 1", n)
				}
			})
		})
	}
}
