package dynamo

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
)

const (
	// lookLimit bounds the dead letters of a queue that one call reads: those that wait for an operator stay there for
	// days.
	lookLimit = 1000
	// lookHides is how long the dead letters that were read are invisible: longer than a call takes, so that none is
	// seen twice in it, and shorter than the time to the next one.
	lookHides = time.Minute
)

// DeadLetteredRecords receives dead letters, and yields those that lack the attribute which every copy made by the provider
// has. It does not wait: what a short poll of SQS misses, the next call finds. In the inbox's dead letters, more than
// 10 poison messages of one instance hide what was moved there behind them, until an operator has dealt with those.
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
	err := call(ctx, "SQS.ReceiveMessage", "", func() (err error) {
		out, err = p.queues.ReceiveMessage(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// receiveLetters asks for dead letters, with their reasons, and hides them for a time.
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

// AnnotateDeadLetter copies first, because a record that is there twice does no harm, and one that is nowhere is lost. The
// copy is in a group of its own, since it is not processed any more: in its instance's group it would block what is
// moved there next.
func (p *Provider) AnnotateDeadLetter(ctx context.Context, m provider.DeadLetteredRecord, why error) error {
	kept := digest("kept", m.Record.ID)
	if err := p.putDead(ctx, m.Queue, provider.Unreadable{Record: m.Record, Err: why}, kept, kept); err != nil {
		return err
	}
	return p.deleteBatch(ctx, p.hub.DeadLetters[m.Queue], []provider.Record{m.Record})
}
