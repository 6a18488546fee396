package sqsqueue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// entryError returns the error for entries with failures about locks. An expired lock cannot be restored.
func entryError(url string, failed []types.BatchResultErrorEntry) error {
	e := temporaryError(url, failed)
	for _, f := range failed {
		e.Fault = e.Fault || f.SenderFault
	}
	return e
}

// DeleteRecords deletes records of a queue.
func (qs *Queues) DeleteRecords(ctx context.Context, queue string, records ...provider.Record) error {
	url, err := qs.URL(queue)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(records, BatchLimit) {
		if err := qs.DeleteBatch(ctx, url, batch); err != nil {
			return err
		}
		for i := range batch {
			batch[i].EndHold()
		}
	}
	return nil
}

// DeleteBatch deletes up to BatchLimit messages.
func (qs *Queues) DeleteBatch(ctx context.Context, url string, records []provider.Record) error {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(records))
	for i := range records {
		entries[i] = types.DeleteMessageBatchRequestEntry{
			Id:            aws.String(strconv.Itoa(i)),
			ReceiptHandle: &records[i].ReceiptHandle,
		}
	}
	return awscall.Do(ctx, "SQS.DeleteMessageBatch", "", func() error {
		out, err := qs.api.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil || len(out.Failed) == 0 {
			return err
		}
		return entryError(url, out.Failed)
	})
}

// AbandonRecords makes records visible again after a delay, rounded down to a second. It skips records whose lock has
// expired, because another consumer may hold them.
func (qs *Queues) AbandonRecords(
	ctx context.Context, queue string, delay time.Duration, records ...provider.Record,
) error {
	url, err := qs.URL(queue)
	if err != nil {
		return err
	}
	held := held(records, qs.now())
	for i := range held {
		held[i].EndHold()
	}
	var errs []error
	for batch := range slices.Chunk(held, BatchLimit) {
		errs = append(errs, qs.AbandonBatch(ctx, url, delay, batch))
	}
	return errors.Join(errs...)
}

// AbandonBatch makes up to BatchLimit messages visible after a delay.
func (qs *Queues) AbandonBatch(ctx context.Context, url string, delay time.Duration, records []provider.Record) error {
	entries := visibilityEntries(records, delay)
	return awscall.Do(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
		out, err := qs.api.ChangeMessageVisibilityBatch(
			ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: entries},
		)
		if err != nil || len(out.Failed) == 0 {
			return err
		}
		return entryError(url, out.Failed)
	})
}

func visibilityEntries(records []provider.Record, d time.Duration) []types.ChangeMessageVisibilityBatchRequestEntry {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(records))
	for i := range records {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id:                aws.String(strconv.Itoa(i)),
			ReceiptHandle:     &records[i].ReceiptHandle,
			VisibilityTimeout: int32(d / time.Second),
		}
	}
	return entries
}
