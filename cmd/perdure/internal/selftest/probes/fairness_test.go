package probes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// fairQueue is a queue whose messages nobody deletes. It delivers those of other tenants before those of a tenant with
// 30 messages in flight, unless it is unfair. The simulation ignores tenants.
type fairQueue struct {
	dynamo.QueueAPI

	url      string
	waiting  []types.SendMessageBatchRequestEntry
	inFlight map[string]int // by tenant
	// detected is the time from which the queue is fair, and most the number of messages that a receive returns.
	detected time.Time
	most     int
	unfair   bool
	// forgets means that the queue is fair in every second receive.
	forgets  bool
	receives int
	newest   bool // the last messages arrive first
}

func (q *fairQueue) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	out, err := q.QueueAPI.SendMessageBatch(ctx, in, opts...)
	switch {
	case *in.QueueUrl != q.url || err != nil:
	case q.newest:
		q.waiting = append(slices.Clone(in.Entries), q.waiting...)
	default:
		q.waiting = append(q.waiting, in.Entries...)
	}
	return out, err
}

func (q *fairQueue) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	if *in.QueueUrl != q.url {
		return q.QueueAPI.ReceiveMessage(ctx, in, opts...)
	}
	const noisy = 30
	q.receives++
	if !q.unfair && !time.Now().Before(q.detected) && (!q.forgets || q.receives%2 == 0) {
		delays := func(e types.SendMessageBatchRequestEntry) int {
			return min(q.inFlight[aws.ToString(e.MessageGroupId)]/noisy, 1)
		}
		slices.SortStableFunc(q.waiting, func(a, b types.SendMessageBatchRequestEntry) int {
			return delays(a) - delays(b)
		})
	}
	n := min(int(in.MaxNumberOfMessages), q.most, len(q.waiting))
	out := &sqs.ReceiveMessageOutput{}
	for i := range q.waiting[:n] {
		out.Messages = append(out.Messages, types.Message{Body: q.waiting[i].MessageBody})
		q.inFlight[aws.ToString(q.waiting[i].MessageGroupId)]++
	}
	q.waiting = q.waiting[n:]
	return out, nil
}

func TestQueueProbes_orderOfTenants_decidesFairness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(q *fairQueue)
		want      string
		undecided bool
	}{
		"at once":        {func(*fairQueue) {}, "after 3 rounds", false},
		"few at a time":  {func(q *fairQueue) { q.most = 3 }, "after 3 rounds", false},
		"after a minute": {func(q *fairQueue) { q.detected = time.Now().Add(time.Minute) }, "after 8 rounds", false},
		"sometimes":      {func(q *fairQueue) { q.forgets = true }, "in 12 of 24 rounds, before the backlog in 12", true},
		"newest first": {
			func(q *fairQueue) { q.unfair, q.newest = true, true }, "in 24 of 24 rounds, before the backlog in 0", true,
		},
		"never":       {func(q *fairQueue) { q.unfair = true }, "other tenants wait behind a backlog", false},
		"no messages": {func(q *fairQueue) { q.most = 0 }, "0 of 10 messages arrive", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := simulated(t, nil)
				purged, _ := p.Queues.(*purgedQueues)
				queue, _ := purged.QueueAPI.(*fairQueue)
				c.change(queue)
				detail, err := p.check("sqs-fairness").Run(t.Context())
				got := detail
				if err != nil {
					got = err.Error()
				}
				_, open := errors.AsType[*UndecidedError](err)
				if !strings.Contains(got, c.want) || open != c.undecided {
					t.Errorf("got %q, %v", detail, err)
				}
			})
		})
	}
}
