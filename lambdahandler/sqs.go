package lambdahandler

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/internal/querycall"
	"github.com/perdure/perdure/internal/sqsrecord"
	"github.com/perdure/perdure/provider"
)

// recordHandler is a record handler of package dispatch. It returns the IDs of the records that failed.
type recordHandler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

// queryHandler is a record handler that also runs queries.
type queryHandler interface {
	recordHandler
	provider.Querier
}

// inboxEvent is an event of the orchestrator function. It contains records of the inbox, or a query in a direct
// invocation.
type inboxEvent struct {
	events.SQSEvent
	querycall.Request
}

// inboxHandler returns the handler of the orchestrator function. An event with records and a query is a query.
func inboxHandler(h queryHandler) func(context.Context, inboxEvent) (any, error) {
	return func(ctx context.Context, e inboxEvent) (any, error) {
		if e.Query != nil {
			result, err := h.QueryInstance(ctx, *e.Query)
			return querycall.NewResponse(e.Query, result, err), nil
		}
		return failures(h.HandleRecords(ctx, recordsOf(e.SQSEvent))), nil
	}
}

// sqsHandler returns the handler of an event source mapping that reports batch item failures.
func sqsHandler(h recordHandler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		return failures(h.HandleRecords(ctx, recordsOf(e))), nil
	}
}

// failures returns a response whose slice is never nil. Some readers interpret "batchItemFailures": null as no failure,
// others as a failure of all records.
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
		records[i] = sqsrecord.Decode(m.MessageId, m.ReceiptHandle, m.Body, m.Attributes)
	}
	return records
}
