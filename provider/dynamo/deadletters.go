package dynamo

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const (
	// lookLimit is the maximum number of dead letters of a queue that one call reads. Dead letters that wait for an
	// operator stay in the queue for days.
	lookLimit = 1000
	// lookHides is the time for which received dead letters are invisible. It exceeds the time of a call, so that a
	// call receives no dead letter twice, and is shorter than the time until the next call.
	lookHides = time.Minute
)

// DeadLetteredRecords receives dead letters and yields those without the attribute that the provider adds to its own
// copies. It does not wait. If a short poll of SQS misses a dead letter, the next call finds it. In the dead-letter
// queue of the inbox, more than 10 poison messages of an instance hide later dead letters of that instance until an
// operator removes the poison messages.
func (p *Provider) DeadLetteredRecords(ctx context.Context) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		for _, queue := range p.deadLetterQueues() {
			for m, err := range p.movedFrom(ctx, queue) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

func (p *Provider) movedFrom(ctx context.Context, queue string) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		for seen := 0; seen < lookLimit; {
			letters, err := p.receiveDead(ctx, queue)
			if err != nil {
				yield(provider.DeadLetteredRecord{}, fmt.Errorf("dynamo: receive dead letters of queue %s: %w", queue,
					err))
				return
			}
			if len(letters) == 0 {
				return
			}
			seen += len(letters)
			for i := range letters {
				if _, ours := letters[i].MessageAttributes[attrReason]; ours {
					continue
				}
				if !yield(provider.DeadLetteredRecord{Queue: queue, Record: recordOf(&letters[i])}, nil) {
					return
				}
			}
		}
	}
}

func (p *Provider) receiveDead(ctx context.Context, queue string) ([]types.Message, error) {
	url := p.hub.DeadLetters[queue]
	in := receiveLetters(url, lookHides)
	var out *sqs.ReceiveMessageOutput
	err := awscall.Do(ctx, "SQS.ReceiveMessage", "", func() (err error) {
		out, err = p.queues.ReceiveMessage(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// receiveLetters returns a request that receives dead letters with their reasons, and hides them for a time.
func receiveLetters(url string, hide time.Duration) *sqs.ReceiveMessageInput {
	return &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: batchLimit, VisibilityTimeout: int32(hide / time.Second),
		MessageAttributeNames: []string{attrReason},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
			types.MessageSystemAttributeNameSequenceNumber, types.MessageSystemAttributeNameSentTimestamp,
		},
	}
}

// AnnotateDeadLetter sends the copy before it deletes the original: a duplicate does no harm, but a lost record would.
// The copy has a message group of its own, because it is not processed any more. In its instance's group it would block
// later dead letters.
func (p *Provider) AnnotateDeadLetter(ctx context.Context, m provider.DeadLetteredRecord, why error) error {
	kept := table.Digest("kept", m.Record.ID)
	if err := p.putDead(ctx, m.Queue, provider.Unreadable{Record: m.Record, Err: why}, kept, kept); err != nil {
		return err
	}
	return p.deleteBatch(ctx, p.hub.DeadLetters[m.Queue], []provider.Record{m.Record})
}
