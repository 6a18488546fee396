package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// lateCounts are queues whose counts are as old as SQS permits: the messages of the counts are those of late ago.
type lateCounts struct {
	*simaws.Queues

	late     time.Duration
	received time.Time // the time when the message in flight was received
	reads    int       // of the inbox
	purges   atomic.Int64
}

func (q *lateCounts) GetQueueAttributes(
	ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	out, err := q.Queues.GetQueueAttributes(ctx, in, opts...)
	if err == nil && strings.HasSuffix(*in.QueueUrl, "inbox.fifo") {
		q.reads++
		if time.Since(q.received) < q.late {
			out.Attributes[string(sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible)] = "0"
		}
	}
	return out, err
}

func (q *lateCounts) PurgeQueue(
	ctx context.Context, in *sqs.PurgeQueueInput, opts ...func(*sqs.Options),
) (*sqs.PurgeQueueOutput, error) {
	q.purges.Add(1)
	return q.Queues.PurgeQueue(ctx, in, opts...)
}

// purgedHub returns a hub with a message in its inbox.
func purgedHub(t *testing.T, late time.Duration) (*dynamo.Provider, *lateCounts) {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(table()))
	q := &lateCounts{Queues: cloud.Queues, late: late}
	p, err := dynamo.New(dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{
			VisibilityTimeout: 10 * time.Minute,
		}),
		TimersURL: cloud.Queues.Create("timers", simaws.QueueConfig{}), WorkQueues: map[string]string{},
	}, dynamo.Clients{Table: cloud.Table, Queues: q})
	if err != nil {
		t.Fatal(err)
	}
	start := provider.Start{InstanceID: "i", Name: "order", StartID: "s"}
	if _, err := p.StartOrchestration(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	return p, q
}

// A process has received a message just before the call, and the counts of SQS are a minute old.
func TestPurgeQueues_countsAreAMinuteOld_detectsMessageInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, q := purgedHub(t, time.Minute)
		if records, err := p.FetchRecords(t.Context(), provider.QueueInbox); err != nil || len(records) != 1 {
			t.Fatalf("received %d messages, error %v", len(records), err)
		}
		q.received = time.Now()
		if _, err := p.PurgeQueues(t.Context(), nil); !errors.Is(err, provider.ErrBusy) ||
			!strings.Contains(err.Error(), "1 messages of queue inbox") {
			t.Errorf("error %v, want ErrBusy for the inbox", err)
		}
		if q.purges.Load() > 0 {
			t.Errorf("%d queues were purged, want none", q.purges.Load())
		}
	})
}

// Without messages in flight, PurgeQueues reads the counts for more than a minute, and then purges the queues.
func TestPurgeQueues_queuesAreIdle_observesThemForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, q := purgedHub(t, time.Minute)
		began := time.Now()
		purged, err := p.PurgeQueues(t.Context(), nil)
		if err != nil || purged.Messages[provider.QueueInbox] != 1 || q.purges.Load() != 2 {
			t.Errorf("purged %+v, %d queues, error %v, want one message and two queues", purged, q.purges.Load(), err)
		}
		if took := time.Since(began); took <= time.Minute || took > 2*time.Minute || q.reads < 4 {
			t.Errorf("took %v with %d counts, want more than a minute and several counts", took, q.reads)
		}
	})
}

// If the context ends during the observation, PurgeQueues deletes nothing.
func TestPurgeQueues_contextEnds_deletesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, q := purgedHub(t, 0)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := p.PurgeQueues(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || q.purges.Load() > 0 {
			t.Errorf("error %v, %d purges, want the end of the context and none", err, q.purges.Load())
		}
	})
}
