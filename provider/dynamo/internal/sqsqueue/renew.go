package sqsqueue

import (
	"context"
	"errors"
	"fmt"
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

// RenewRecords extends locks. A record whose Hold has expired counts as lost without a call, because AWS accepts some
// renewals of an expired lock without extending it.
func (qs *Queues) RenewRecords(
	ctx context.Context, queue string, lock time.Duration, records ...provider.Record,
) (lost []provider.Record, err error) {
	renewals := make([]provider.Renewal, len(records))
	calls, err := qs.RenewCalls(ctx, queue, lock, records, renewals)
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

// RenewCalls returns the calls that extend locks, one per batch. They write their results into the renewals. A record
// whose Hold has expired is lost and needs no call.
func (qs *Queues) RenewCalls(
	ctx context.Context, queue string, lock time.Duration, records []provider.Record, renewals []provider.Renewal,
) (calls []func() error, err error) {
	url, err := qs.URL(queue)
	if err != nil {
		return nil, err
	}
	if lock < time.Second || lock > longestLock {
		return nil, &provider.FieldError{
			Field:   "lock",
			Problem: fmt.Sprintf("must be 1 second to 12 hours, but is %v", lock),
		}
	}
	now := qs.now()
	var held []int
	for i := range records {
		if records[i].Held(now) {
			held = append(held, i)
			continue
		}
		renewals[i].Lost = true
		records[i].EndHold()
	}
	for batch := range slices.Chunk(held, BatchLimit) {
		calls = append(
			calls,
			func() error { return qs.renewBatch(ctx, url, lock.Truncate(time.Second), batch, records, renewals) },
		)
	}
	return calls, nil
}

// renewBatch extends the locks of the records with these indices.
func (qs *Queues) renewBatch(
	ctx context.Context, url string, lock time.Duration, batch []int, records []provider.Record,
	renewals []provider.Renewal,
) error {
	some := make([]provider.Record, len(batch))
	for n, i := range batch {
		some[n] = records[i]
	}

	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: visibilityEntries(some, lock)}
	err := awscall.Do(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
		from := qs.now()
		out, err := qs.api.ChangeMessageVisibilityBatch(ctx, in)
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
func setRenewals(
	url string, failures []types.BatchResultErrorEntry, from time.Time, lock time.Duration, batch []int,
	records []provider.Record, renewals []provider.Renewal,
) error {
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
			continue // an earlier try has set the result
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
func renewalOf(
	r *provider.Record, failed *types.BatchResultErrorEntry, from time.Time, lock time.Duration,
) (x provider.Renewal) {
	switch {
	case failed == nil:
		if x.Until = from.Add(lock); r.Hold != nil && !r.Hold.Extend(from, lock) {
			x.Until = time.Time{}
		}
	case !lockExpired(failed):
		if x.Err = errNotExtended; isLockLimit(failed) {
			x.Err = provider.ErrLockLimit
		}
	case r.Hold == nil || !r.Hold.Ended():
		x.Lost = true
		r.EndHold()
	}
	return x
}

// held returns the records whose locks have not expired.
func held(records []provider.Record, now time.Time) (held []provider.Record) {
	for i := range records {
		if records[i].Held(now) {
			held = append(held, records[i])
		}
	}
	return held
}

// errNotExtended is a placeholder until the error of the batch is known.
var errNotExtended = errors.New("lock was not extended")

// lockExpired reports whether the error of SQS means that the receiver no longer holds the message. SQS has several
// codes for this error, because the message is deleted, visible, or received by another consumer.
func lockExpired(f *types.BatchResultErrorEntry) bool {
	switch strings.TrimPrefix(aws.ToString(f.Code), "AWS.SimpleQueueService.") {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue":
		// an error about VisibilityTimeout means the limit of 12 hours
		return strings.Contains(aws.ToString(f.Message), "parameter ReceiptHandle")
	default:
		return false
	}
}

// isLockLimit reports whether the error of SQS means that a message would be locked for more than 12 hours since its
// receipt.
func isLockLimit(f *types.BatchResultErrorEntry) bool {
	return strings.HasSuffix(aws.ToString(f.Code), "InvalidParameterValue") &&
		strings.Contains(aws.ToString(f.Message), "VisibilityTimeout")
}
