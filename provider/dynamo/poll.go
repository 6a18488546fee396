package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
)

var _ provider.Polling = (*Provider)(nil)

const (
	longestWait = 20 * time.Second // of a long poll
	longestLock = 12 * time.Hour   // of a message, counted from its receive
)

// FetchRecords waits for records and locks them. Their holds are reckoned from before the call, since the moment in which the
// queue locks them is not known better; so that a long wait does not use them up, none is longer than a third of the lock.
func (p *Provider) FetchRecords(ctx context.Context, queue string) ([]provider.Record, error) {
	url, err := p.queueURL(queue)
	if err != nil {
		return nil, err
	}
	lock, err := p.visibility(ctx, url)
	if err != nil {
		return nil, err
	}
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: batchLimit, VisibilityTimeout: int32(lock / time.Second),
		WaitTimeSeconds: int32(min(longestWait, max(lock/3, time.Second)) / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameSequenceNumber,
		},
	}
	var out *sqs.ReceiveMessageOutput
	var from time.Time
	err = call(ctx, "SQS.ReceiveMessage", "", func() (err error) {
		from = p.now()
		out, err = p.queues.ReceiveMessage(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	records := make([]provider.Record, len(out.Messages))
	for i := range out.Messages {
		records[i] = recordOf(&out.Messages[i])
		records[i].Hold = provider.NewHold(from, lock)
	}
	return records, nil
}

func recordOf(m *types.Message) provider.Record {
	count, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		count = 1
	}
	return provider.Record{
		ID: aws.ToString(m.MessageId), Lock: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body), ReceiveCount: count,
		Group:    m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		Sequence: m.Attributes[string(types.MessageSystemAttributeNameSequenceNumber)],
	}
}

// visibility is how long a queue locks what is received, asked for once. It is asked for again of no receive either: what is
// fetched is locked for exactly as long as its hold says, also after the queue's setting has changed.
func (p *Provider) visibility(ctx context.Context, url string) (time.Duration, error) {
	if d, ok := p.visibilities.Load(url); ok {
		return d.(time.Duration), nil //nolint:forcetypeassert // only this function stores
	}
	const name = types.QueueAttributeNameVisibilityTimeout
	var out *sqs.GetQueueAttributesOutput
	err := call(ctx, "SQS.GetQueueAttributes", "", func() (err error) {
		out, err = p.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}})
		return err
	})
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil || seconds < 1 {
		return 0, fmt.Errorf("dynamo: hub %q: queue %s: %w", p.hub.Name, url, &provider.FieldError{
			Field: string(name), Problem: fmt.Sprintf("is %q: records could not be locked", out.Attributes[string(name)]),
		})
	}
	d := time.Duration(seconds) * time.Second
	p.visibilities.Store(url, d)
	return d, nil
}

// cancelsAsked are what is cancelled of an execution, as far as its work items do not know it.
type cancelsAsked struct {
	from    int64
	cancels provider.Cancels
}

// RenewWorkItemLocks extends the visibility of the records while it reads what is cancelled of each execution, once.
func (p *Provider) RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error) {
	records := make([]provider.Record, len(items))
	asked := map[string]*cancelsAsked{}
	for i := range items {
		it := &items[i]
		if records[i] = it.Record; it.ExecutionID == "" {
			continue
		}
		from := max(it.Segment, it.CancelsFrom)
		if x := asked[it.ExecutionID]; x != nil {
			x.from = min(x.from, from)
		} else {
			asked[it.ExecutionID] = &cancelsAsked{from: from}
		}
	}
	var lost []provider.Record
	calls := []func() error{func() (err error) {
		lost, err = p.RenewRecords(ctx, queue, lock, records...)
		return err
	}}
	for _, executionID := range slices.Sorted(maps.Keys(asked)) {
		x := asked[executionID]
		calls = append(calls, func() (err error) {
			x.cancels, _, err = p.ReadCancels(ctx, executionID, x.from)
			return err
		})
	}
	err := together(calls...)
	renewals := make([]provider.Renewal, len(items))
	for i := range items {
		if x := asked[items[i].ExecutionID]; x != nil {
			renewals[i].Cancel = x.cancels.Of(items[i].ActivityID)
		}
		renewals[i].Lost = slices.ContainsFunc(lost, func(r provider.Record) bool { return r.ID == items[i].Record.ID })
	}
	return renewals, err
}

// RenewRecords extends locks. AWS takes some renewals of a lock that is over and does nothing, so a hold that is past counts
// as lost without being asked for.
func (p *Provider) RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	url, err := p.queueURL(queue)
	if err != nil {
		return nil, err
	}
	if lock < time.Second || lock > longestLock {
		return nil, &provider.FieldError{Field: "lock", Problem: fmt.Sprintf("must be 1 second to 12 hours, and is %v", lock)}
	}
	held, lost := stillHeld(records, p.now())
	var errs []error
	for batch := range slices.Chunk(held, batchLimit) {
		gone, err := p.renewBatch(ctx, url, lock.Truncate(time.Second), batch)
		lost, errs = append(lost, gone...), append(errs, err)
	}
	for i := range lost {
		lost[i].EndHold()
	}
	return lost, errors.Join(errs...)
}

// stillHeld tells the records that are still held from those that are not.
func stillHeld(records []provider.Record, now time.Time) (held, lost []provider.Record) {
	for i := range records {
		if records[i].Held(now) {
			held = append(held, records[i])
		} else {
			lost = append(lost, records[i])
		}
	}
	return held, lost
}

func (p *Provider) renewBatch(ctx context.Context, url string, lock time.Duration, batch []provider.Record) (lost []provider.Record, err error) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: visibilityEntries(batch, lock)}
	err = call(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
		from := p.now()
		out, err := p.queues.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return err
		}
		failed := indices(out.Failed)
		for i := range batch {
			if !failed[i] && batch[i].Hold != nil {
				batch[i].Hold.Extend(from, lock)
			}
		}
		var rest []types.BatchResultErrorEntry
		lost, rest = lostOf(batch, out.Failed)
		if len(rest) > 0 {
			return entryError(url, rest)
		}
		return nil
	})
	return lost, err
}

// lostOf finds the records whose locks are over among those that were not renewed. What was deleted or given back while the
// call was under way is not lost.
func lostOf(batch []provider.Record, failed []types.BatchResultErrorEntry) (lost []provider.Record, rest []types.BatchResultErrorEntry) {
	for _, f := range failed {
		i, err := strconv.Atoi(aws.ToString(f.Id))
		switch {
		case err != nil || i < 0 || i >= len(batch) || !lockIsOver(f):
			rest = append(rest, f)
		case batch[i].Hold == nil || !batch[i].Hold.Ended():
			lost = append(lost, batch[i])
		}
	}
	return lost, rest
}

// lockIsOver reports whether SQS says that a message is not its receiver's any more. It has no one word for it: the message
// is gone, visible, or received by another.
func lockIsOver(f types.BatchResultErrorEntry) bool {
	switch strings.TrimPrefix(aws.ToString(f.Code), "AWS.SimpleQueueService.") {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue":
		return strings.Contains(aws.ToString(f.Message), "parameter ReceiptHandle") // and not VisibilityTimeout: the 12 hours
	default:
		return false
	}
}
