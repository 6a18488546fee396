package lambdahandler

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/provider"
)

// recordHandler is the entry to dispatch: it takes records, and returns the ids of those that failed.
type recordHandler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

// sqsHandler returns the handler for a mapping that reports batch item failures.
func sqsHandler(h recordHandler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		return failures(h.HandleRecords(ctx, recordsOf(e))), nil
	}
}

// failures never holds a nil slice: some readers take "batchItemFailures": null for no failure, others for the failure
// of all.
func failures(ids []string) events.SQSEventResponse {
	r := events.SQSEventResponse{BatchItemFailures: make([]events.SQSBatchItemFailure, len(ids))}
	for i, id := range ids {
		r.BatchItemFailures[i].ItemIdentifier = id
	}
	return r
}

func recordsOf(e events.SQSEvent) []provider.Record {
	records := make([]provider.Record, len(e.Records))
	for i := range e.Records {
		m := &e.Records[i]
		records[i] = provider.RecordOf(m.MessageId, m.ReceiptHandle, m.Body, m.Attributes)
	}
	return records
}
