package sqsqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/sqsrecord"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// recordAttributes are the attributes of a message that its record contains.
var recordAttributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
	types.MessageSystemAttributeNameSequenceNumber, types.MessageSystemAttributeNameSentTimestamp,
}

const (
	maxWait     = 20 * time.Second // of a long poll
	longestLock = 12 * time.Hour   // of a message, counted from its receipt
	// timersLock is the lock of a received timer. It is short, because a process that crashes delays its timers by the
	// lock.
	timersLock = 8 * time.Second
)

// FetchRecords waits for records and locks them. Their Holds start at the time before the call, because the exact time
// of the lock is not known. FetchRecords waits for at most a third of the lock timeout, so that most of the Hold
// remains after the wait.
func (qs *Queues) FetchRecords(ctx context.Context, queue string) ([]provider.Record, error) {
	url, err := qs.URL(queue)
	if err != nil {
		return nil, err
	}
	lock, err := qs.visibility(ctx, url)
	if err != nil {
		return nil, err
	}
	if queue == provider.QueueTimers {
		lock = min(lock, timersLock)
	}
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: BatchLimit, VisibilityTimeout: int32(lock / time.Second),
		WaitTimeSeconds:             int32(min(maxWait, max(lock/3, time.Second)) / time.Second),
		MessageSystemAttributeNames: recordAttributes,
	}
	var out *sqs.ReceiveMessageOutput
	var from time.Time
	err = awscall.Do(ctx, "SQS.ReceiveMessage", "", func() (err error) {
		from = qs.now()
		out, err = qs.api.ReceiveMessage(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	records := make([]provider.Record, len(out.Messages))
	for i := range out.Messages {
		records[i] = RecordOf(&out.Messages[i])
		records[i].Hold = provider.NewHold(from, lock)
	}
	return records, nil
}

// RecordOf returns the record of a message.
func RecordOf(m *types.Message) provider.Record {
	return sqsrecord.Decode(
		aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), aws.ToString(m.Body), m.Attributes,
	)
}

// visibility returns the visibility timeout of a queue, which is read once. Each receive sets this timeout, so that a
// record is locked for exactly the length of its Hold, even if the queue's setting has changed.
func (qs *Queues) visibility(ctx context.Context, url string) (time.Duration, error) {
	if d, ok := qs.visibilities.Load(url); ok {
		return d.(time.Duration), nil //nolint:forcetypeassert // only this function stores values
	}
	const name = types.QueueAttributeNameVisibilityTimeout
	attributes, err := qs.readAttributes(ctx, url, name)
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.Atoi(attributes[string(name)])
	if err != nil || seconds < 1 {
		return 0, fmt.Errorf("dynamo: hub %q: queue %s: %w", qs.Hub, url, &provider.FieldError{
			Field:   string(name),
			Problem: fmt.Sprintf("is %q, so records of the queue cannot be locked", attributes[string(name)]),
		})
	}
	d := time.Duration(seconds) * time.Second
	qs.visibilities.Store(url, d)
	return d, nil
}
