package cost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/internal/meter"
)

// Queues has the methods of SQS that a mapping uses.
type Queues interface {
	ReceiveMessage(
		ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
	) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(
		ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
}

// ManualHub is a hub on any cloud. ManualHub calls the functions one after another in place of the mappings, so a shape
// makes the same calls on each cloud.
type ManualHub struct {
	// Metered has the AWS clients of the functions. Meter counts their calls.
	Metered dynamo.Clients
	Meter   *meter.Meter
	Hub     dynamo.HubConfig
	// Queues has the calls of the mappings. Meter does not count them.
	Queues Queues
}

// handler is a function of the hub.
type handler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

// most limits the number of calls of each function for one instance.
const most = 5000

// Counts runs an instance of a shape to its end, and returns the AWS calls of the functions. The activities of the
// shape must not wait for a client.
func (b *ManualHub) Counts(ctx context.Context, s *Shape) (meter.Counts, error) {
	p, err := dynamo.New(b.Hub, b.Metered, dynamo.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	cache := 0
	if s.Cold {
		cache = -1
	}
	turns, err := dispatch.NewOrchestrator(Registry(), p, &dispatch.OrchestratorOptions{
		BuildID: "cost", Logger: slog.New(slog.DiscardHandler), CacheBytes: cache,
	})
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	defer turns.Close()
	work, err := dispatch.NewWorker(Registry(), p, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	if err := turns.ReportBuild(ctx); err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	c := client.New(p)
	if err := b.run(ctx, c, turns, work, "before", &Shape{Orchestration: chainName, Input: 1}); err != nil {
		return nil, err
	}
	b.Meter.Reset()
	err = b.run(ctx, c, turns, work, instanceID(0), s)
	return b.Meter.Counts(), err
}

// run starts an instance and calls the functions until the queues are empty.
func (b *ManualHub) run(ctx context.Context, c *client.Client, turns, work handler, id string, s *Shape) error {
	if _, err := c.Start(ctx, s.Orchestration, s.Input, client.WithInstanceID(id)); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	for range most {
		t, err := b.pass(ctx, b.Hub.InboxURL, turns)
		if err != nil {
			return err
		}
		w, err := b.pass(ctx, b.Hub.WorkQueues[perdure.DefaultQueue], work)
		if err != nil {
			return err
		}
		if t+w == 0 {
			return nil
		}
	}
	return errors.New("cost: the instance does not end")
}

// pass passes one message of a queue to a function, like its mapping. With several messages at once, the batches would
// depend on the speed of the cloud.
func (b *ManualHub) pass(ctx context.Context, url string, to handler) (n int, err error) {
	out, err := b.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 1,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) == 0 {
		return 0, err
	}
	failed := to.HandleRecords(ctx, simhub.Records(out.Messages))
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i := range out.Messages {
		if m := &out.Messages[i]; !slices.Contains(failed, *m.MessageId) {
			in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
				Id: m.MessageId, ReceiptHandle: m.ReceiptHandle,
			})
		}
	}
	if len(in.Entries) == 0 {
		return len(out.Messages), nil
	}
	_, err = b.Queues.DeleteMessageBatch(ctx, in)
	return len(out.Messages), err
}
