package probes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// MaxReceives is the maxReceiveCount of the queue with dead letters.
const MaxReceives = 2

// redrive receives a message more often than its queue allows. Then it is in the dead-letter queue.
func (p *queueProbes) redrive(ctx context.Context) (string, error) {
	const body = "redrive"
	if _, err := p.send(ctx, p.RedriveURL, grouped(body, body, "r")); err != nil {
		return "", undecided(err)
	}
	for n := range MaxReceives {
		received, err := p.receive(ctx, p.RedriveURL, body, locked)
		if err != nil {
			return "", fmt.Errorf("receive %d of %d: %w", n+1, MaxReceives, err)
		}
		refused, err := p.lock(ctx, p.RedriveURL, received, 0)
		if err != nil {
			return "", undecided(err)
		}
		if refused != nil {
			return "", errors.New("the release is rejected")
		}
	}
	if more, err := p.poll(ctx, p.RedriveURL, locked); err != nil || len(more) > 0 {
		return "", cmpErr(undecided(err), fmt.Sprintf("the queue delivers a message %d times", MaxReceives+1))
	}
	dead, err := p.receive(ctx, p.DeadLettersURL, body, locked)
	if err != nil {
		return "", fmt.Errorf("dead-letter queue: %w", err)
	}
	return fmt.Sprintf("moved instead of receive %d", MaxReceives+1), undecided(p.remove(ctx, p.DeadLettersURL, dead))
}

const (
	// countLimit is the time for which a purge of a hub reads counts.
	countLimit    = 75 * time.Second
	countPause    = 500 * time.Millisecond
	countMessages = 5
	purgeTime     = 60 * time.Second
	purgePause    = 5 * time.Second
)

// counts measures the time until the count of a queue includes new messages.
func (p *queueProbes) counts(ctx context.Context) (string, error) {
	for i := range countMessages {
		if _, err := p.send(ctx, p.PurgeURL, message("count-"+strconv.Itoa(i))); err != nil {
			return "", undecided(err)
		}
	}
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	began := p.Now()
	err := p.untilRead(ctx, countLimit, countPause, func() (missing, err error) {
		out, err := p.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &p.PurgeURL, AttributeNames: []types.QueueAttributeName{name},
		})
		if err != nil {
			return nil, err
		}
		count, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			return nil, fmt.Errorf("count: %w", err)
		}
		if count < countMessages { // more if the SDK has repeated a send
			missing = fmt.Errorf("the queue with %d messages counts %d after %v", countMessages, count, countLimit)
		}
		return missing, nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("right after %.1f s", p.Now().Sub(began).Seconds()), nil
}

// purger is the call that purges a queue. Clients of SQS implement it.
type purger interface {
	PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, opts ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error)
}

// purge purges a queue with messages twice. SQS rejects the second purge for a minute.
func (p *queueProbes) purge(ctx context.Context) (string, error) {
	queues, ok := p.Queues.(purger)
	if !ok {
		return "", undecided(errors.New("the client has no PurgeQueue"))
	}
	purge := func() error {
		_, err := queues.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &p.PurgeURL})
		return err
	}
	if _, err := p.send(ctx, p.PurgeURL, message("purged")); err != nil {
		return "", undecided(err)
	}
	if err := purge(); err != nil {
		return "", undecided(err)
	}
	again := purge()
	if _, excluded := errors.AsType[*types.PurgeQueueInProgress](again); !excluded {
		if again != nil {
			return "", undecided(again)
		}
		return "", errors.New("a second purge is accepted at once")
	}
	if err := p.Sleep(ctx, purgeTime); err != nil {
		return "", undecided(err)
	}
	left, err := p.poll(ctx, p.PurgeURL, locked)
	if err != nil {
		return "", undecided(err)
	}
	if len(left) > 0 {
		return "", fmt.Errorf("message %q remains after %v", aws.ToString(left[0].Body), purgeTime)
	}
	if err := p.Sleep(ctx, purgePause); err != nil { // clocks differ
		return "", undecided(err)
	}
	if err := purge(); err != nil {
		return "", fmt.Errorf("a second purge after %v: %w", purgeTime+purgePause, err)
	}
	return "a second purge is rejected for 60 s", nil
}
