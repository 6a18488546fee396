package lambdahandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/provider"
)

// recordHandler is dispatch's way in: records, and the ids of those that failed.
type recordHandler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

// sqsHandler answers a mapping that reports batch item failures.
func sqsHandler(h recordHandler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		return failures(h.HandleRecords(ctx, recordsOf(e))), nil
	}
}

// failures is never a nil slice: "batchItemFailures": null means all or nothing, depending on who reads it.
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
		count, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if err != nil {
			count = 1
		}
		records[i] = provider.Record{
			ID: m.MessageId, Lock: m.ReceiptHandle, Body: m.Body, ReceiveCount: count,
			Group: m.Attributes["MessageGroupId"], Sequence: m.Attributes["SequenceNumber"],
		}
	}
	return records
}

// renewerEvent is either of the renewer's events: records of the timers queue, or the tick of the watch's rule.
type renewerEvent struct {
	events.SQSEvent

	Source string `json:"source"`
}

// sourceOfTicks is what EventBridge calls itself in the events of a rule.
const sourceOfTicks = "aws.events"

// renewerHandler tells the two events apart. It refuses others, rather than taking them for a tick.
func renewerHandler(k *dispatch.Timekeeper) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var e renewerEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("lambdahandler: event of the renewer: %w", err)
		}
		switch {
		case len(e.Records) > 0:
			return failures(k.HandleRecords(ctx, recordsOf(e.SQSEvent))), nil
		case e.Source != sourceOfTicks:
			return nil, errors.New("lambdahandler: the renewer got an event that is neither of SQS nor of its rule")
		}
		woken, err := k.Watch(ctx)
		return map[string]int{"woken": woken}, err
	}
}
