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
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

var _ provider.Poller = (*Provider)(nil)

const (
	longestWait = 20 * time.Second // of a long poll
	longestLock = 12 * time.Hour   // of a message, counted from its receipt
	// timersLock is the lock of a received timer. It is short, because timers are due to the second and a process that
	// dies delays them by the lock.
	timersLock = 8 * time.Second
)

// FetchRecords waits for records and locks them. Their Holds start at the time before the call, because the exact time
// of the lock is not known. FetchRecords waits for at most a third of the lock timeout, so that the wait does not use
// up the Hold.
func (p *Provider) FetchRecords(ctx context.Context, queue string) ([]provider.Record, error) {
	url, err := p.queueURL(queue)
	if err != nil {
		return nil, err
	}
	lock, err := p.visibility(ctx, url)
	if err != nil {
		return nil, err
	}
	if queue == provider.QueueTimers {
		lock = min(lock, timersLock)
	}
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: batchLimit, VisibilityTimeout: int32(lock / time.Second),
		WaitTimeSeconds: int32(min(longestWait, max(lock/3, time.Second)) / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameSequenceNumber,
			types.MessageSystemAttributeNameSentTimestamp,
		},
	}
	var out *sqs.ReceiveMessageOutput
	var from time.Time
	err = awscall.Do(ctx, "SQS.ReceiveMessage", "", func() (err error) {
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
	return provider.RecordOf(aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), aws.ToString(m.Body), m.Attributes)
}

// visibility returns the visibility timeout of a queue, which is read once. Each receive sets this timeout, so that a
// record is locked for exactly the length of its Hold, even if the queue's setting has changed.
func (p *Provider) visibility(ctx context.Context, url string) (time.Duration, error) {
	if d, ok := p.visibilities.Load(url); ok {
		return d.(time.Duration), nil //nolint:forcetypeassert // only this function stores
	}
	const name = types.QueueAttributeNameVisibilityTimeout
	var out *sqs.GetQueueAttributesOutput
	err := awscall.Do(ctx, "SQS.GetQueueAttributes", "", func() (err error) {
		out, err = p.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}})
		return err
	})
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil || seconds < 1 {
		return 0, fmt.Errorf("dynamo: hub %q: queue %s: %w", p.hub.Name, url, &provider.FieldError{
			Field:   string(name),
			Problem: fmt.Sprintf("is %q, so records of the queue cannot be locked", out.Attributes[string(name)]),
		})
	}
	d := time.Duration(seconds) * time.Second
	p.visibilities.Store(url, d)
	return d, nil
}

// cancelsAsked is the part of an execution's cancel record that its work items have not read.
type cancelsAsked struct {
	from    int64
	cancels provider.Cancels
	err     error
}

// RenewWorkItemLocks extends the visibility of the records and reads the cancel record of each execution concurrently,
// once per execution. If there are more items than a worker receives at once, it limits the number of failing calls.
// The limits of the locks and of the reads are separate, so that the locks do not wait for the reads.
func (p *Provider) RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error) {
	locking, reading := ctx, ctx
	if len(items) > batchLimit {
		locking, reading = awscall.WithRetryBudget(ctx), awscall.WithRetryBudget(ctx)
	}

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

	renewals := make([]provider.Renewal, len(items))
	calls, err := p.renewCalls(locking, queue, lock, records, renewals)
	if err != nil {
		return nil, err
	}
	for _, executionID := range slices.Sorted(maps.Keys(asked)) {
		x := asked[executionID]
		calls = append(calls, func() error {
			x.cancels, _, x.err = p.ReadCancels(reading, executionID, x.from)
			return x.err
		})
	}
	err = awscall.Parallel(calls...)
	for i := range items {
		if x := asked[items[i].ExecutionID]; x != nil {
			renewals[i].Cancel = x.cancels.Of(items[i].ActivityID)
			renewals[i].CancelErr = x.err
		}
	}
	return renewals, err
}

// RenewRecords extends locks. A record whose Hold has expired counts as lost without a call, because AWS accepts some
// renewals of an expired lock without extending it.
func (p *Provider) RenewRecords(ctx context.Context, queue string, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	renewals := make([]provider.Renewal, len(records))
	calls, err := p.renewCalls(ctx, queue, lock, records, renewals)
	if err != nil {
		return nil, err
	}
	err = awscall.Parallel(calls...)
	for i := range renewals {
		if renewals[i].Lost {
			lost = append(lost, records[i])
		}
	}
	return lost, err
}

// renewCalls returns the calls that extend locks, one per batch. They write their results into the renewals. A record
// whose Hold has expired is lost and needs no call.
func (p *Provider) renewCalls(ctx context.Context, queue string, lock time.Duration, records []provider.Record, renewals []provider.Renewal) (calls []func() error, err error) {
	url, err := p.queueURL(queue)
	if err != nil {
		return nil, err
	}
	if lock < time.Second || lock > longestLock {
		return nil, &provider.FieldError{
			Field:   "lock",
			Problem: fmt.Sprintf("must be 1 second to 12 hours, but is %v", lock),
		}
	}
	now := p.now()
	var held []int
	for i := range records {
		if records[i].Held(now) {
			held = append(held, i)
			continue
		}
		renewals[i].Lost = true
		records[i].EndHold()
	}
	for batch := range slices.Chunk(held, batchLimit) {
		calls = append(calls, func() error { return p.renewBatch(ctx, url, lock.Truncate(time.Second), batch, records, renewals) })
	}
	return calls, nil
}

// renewBatch extends the locks of the records with these indices.
func (p *Provider) renewBatch(ctx context.Context, url string, lock time.Duration, batch []int, records []provider.Record, renewals []provider.Renewal) error {
	some := make([]provider.Record, len(batch))
	for n, i := range batch {
		some[n] = records[i]
	}

	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: visibilityEntries(some, lock)}
	err := awscall.Do(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
		from := p.now()
		out, err := p.queues.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return err
		}
		return setRenewals(url, out.Failed, from, lock, batch, records, renewals)
	})
	if err == nil {
		return nil
	}
	for _, i := range batch {
		if r := &renewals[i]; !r.Lost && r.Until.IsZero() && !errors.Is(r.Err, provider.ErrLockLimit) {
			r.Err = err
		}
	}
	return err
}

// setRenewals writes the response of SQS for a batch into the renewals. It returns an error for records that are
// neither extended nor lost.
func setRenewals(url string, failures []types.BatchResultErrorEntry, from time.Time, lock time.Duration, batch []int, records []provider.Record, renewals []provider.Renewal) error {
	failed := map[int]*types.BatchResultErrorEntry{}
	for n := range failures {
		if at, err := strconv.Atoi(aws.ToString(failures[n].Id)); err == nil {
			failed[at] = &failures[n]
		}
	}

	var rest []types.BatchResultErrorEntry
	limited := false
	for n, i := range batch {
		if renewals[i].Lost {
			continue // an earlier try has found that
		}
		renewals[i] = renewalOf(&records[i], failed[n], from, lock)
		switch err := renewals[i].Err; {
		case errors.Is(err, provider.ErrLockLimit):
			limited = true
		case err != nil:
			rest = append(rest, *failed[n])
		}
	}
	switch {
	case len(rest) > 0:
		return entryError(url, rest)
	case limited:
		return provider.ErrLockLimit
	default:
		return nil
	}
}

// renewalOf returns the result of renewing one record's lock. A record that was deleted or released during the call is
// not lost.
func renewalOf(r *provider.Record, failed *types.BatchResultErrorEntry, from time.Time, lock time.Duration) (x provider.Renewal) {
	switch {
	case failed == nil:
		if x.Until = from.Add(lock); r.Hold != nil && !r.Hold.Extend(from, lock) {
			x.Until = time.Time{}
		}
	case !lockIsOver(failed):
		if x.Err = errNotExtended; isLockLimit(failed) {
			x.Err = provider.ErrLockLimit
		}
	case r.Hold == nil || !r.Hold.Ended():
		x.Lost = true
		r.EndHold()
	}
	return x
}

// stillHeld returns the records whose locks have not expired.
func stillHeld(records []provider.Record, now time.Time) (held []provider.Record) {
	for i := range records {
		if records[i].Held(now) {
			held = append(held, records[i])
		}
	}
	return held
}

// errNotExtended is a placeholder until the error of the batch is known.
var errNotExtended = errors.New("lock was not extended")

// lockIsOver reports whether the error of SQS means that the receiver does not hold the message any more. SQS has
// several codes for this: the message is deleted, visible, or received by another consumer.
func lockIsOver(f *types.BatchResultErrorEntry) bool {
	switch strings.TrimPrefix(aws.ToString(f.Code), "AWS.SimpleQueueService.") {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue":
		// but not VisibilityTimeout, which means the 12 hours
		return strings.Contains(aws.ToString(f.Message), "parameter ReceiptHandle")
	default:
		return false
	}
}

// isLockLimit reports whether the error of SQS means that a message would be locked for more than 12 hours since its
// receipt.
func isLockLimit(f *types.BatchResultErrorEntry) bool {
	return strings.HasSuffix(aws.ToString(f.Code), "InvalidParameterValue") && strings.Contains(aws.ToString(f.Message), "VisibilityTimeout")
}
