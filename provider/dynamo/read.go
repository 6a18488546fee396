package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// strongTries: a strongly consistent query can still see half of a transaction, for moments; after so many the items are missing.
const strongTries = 3

// ReadOrchestration reads the execution that the item's messages name, or else the instance's current one.
func (p *Provider) ReadOrchestration(ctx context.Context, it *provider.OrchestrationItem, c provider.Consistency) (*provider.Orchestration, error) {
	executionID := ""
	for i := range it.Messages {
		if id := it.Messages[i].ExecutionID; id != "" {
			executionID = id
		}
	}
	if executionID == "" {
		inst, err := p.readInstance(ctx, it.InstanceID, c)
		if err != nil {
			return nil, err
		}
		executionID = inst.ExecutionID
	}
	return p.readExecution(ctx, it.InstanceID, executionID, c)
}

// readExecution reads a history. An eventual read that finds it torn becomes a strong one.
func (p *Provider) readExecution(ctx context.Context, instanceID, executionID string, c provider.Consistency) (*provider.Orchestration, error) {
	for try := 1; ; try++ {
		segments, err := p.querySegments(ctx, instanceID, executionID, c)
		_, torn := errors.AsType[*tornError](err)
		switch {
		case torn && c == provider.Strong && try == strongTries:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w: %w", instanceID, executionID, provider.ErrCorrupt, err)
		case torn:
			c = provider.Strong
			continue
		case err != nil:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, err)
		case len(segments) == 0:
			return nil, fmt.Errorf("dynamo: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		last := segments[len(segments)-1]
		return &provider.Orchestration{
			InstanceID: instanceID, Verified: c == provider.Strong, Segments: segments,
			Head: provider.Head{ExecutionID: executionID, Segment: last.Sequence, Watermark: last.Watermark},
		}, nil
	}
}

func (p *Provider) querySegments(ctx context.Context, instanceID, executionID string, c provider.Consistency) ([]provider.Segment, error) {
	var items []item
	for page, err := range p.query(ctx, instanceID, segmentsQuery(p.hub.Table, executionID, c)) {
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
	}
	return decodeSegments(items)
}

func segmentsQuery(table, executionID string, c provider.Consistency) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(bool(c)),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: item{":pk": str(executionPK(executionID)), ":sk": str(skSegments)},
	}
}

// query pages through a query: a page ends at 1 MB.
func (p *Provider) query(ctx context.Context, instanceID string, in *dynamodb.QueryInput) iter.Seq2[[]item, error] {
	return func(yield func([]item, error) bool) {
		for {
			var out *dynamodb.QueryOutput
			err := call(ctx, "DynamoDB.Query", instanceID, func() (err error) {
				out, err = p.table.Query(ctx, in)
				return err
			})
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out.Items, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// ReadHistory reads the events of an execution, strongly consistent.
func (p *Provider) ReadHistory(ctx context.Context, executionID string, after int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		o, err := p.readExecution(ctx, "", executionID, provider.Strong)
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		for _, s := range o.Segments {
			for i := range s.Events {
				if s.Events[i].ID > after && !yield(s.Events[i], nil) {
					return
				}
			}
		}
	}
}

// ReadEnd reads the last segment alone, backwards from the end.
func (p *Provider) ReadEnd(ctx context.Context, executionID string) (history.Event, error) {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
	var parts []item
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return history.Event{}, err
		}
		parts = append(parts, page...)
		if n := len(parts); n > 0 && getNumber(parts[n-1], attrParts) > 0 {
			break // the first part: the segment is whole
		}
	}
	return lastEvent(executionID, parts)
}

func lastEvent(executionID string, backwards []item) (history.Event, error) {
	n := len(backwards)
	if n == 0 {
		return history.Event{}, fmt.Errorf("dynamo: execution %s: %w", executionID, provider.ErrNotFound)
	}
	parts := make([]item, n)
	for i, it := range backwards {
		parts[n-1-i] = it
	}
	sequence, _, err := parseSegmentSK(getString(parts[0], attrSK))
	if err != nil {
		return history.Event{}, fmt.Errorf("dynamo: execution %s: %w: %w", executionID, provider.ErrCorrupt, err)
	}
	s, err := decodeSegment(sequence, parts)
	if err != nil {
		return history.Event{}, fmt.Errorf("dynamo: execution %s: %w", executionID, err)
	}
	if e := s.Events[len(s.Events)-1]; e.Kind.Terminal() {
		return e, nil
	}
	return history.Event{}, fmt.Errorf("dynamo: execution %s has not ended: %w", executionID, provider.ErrNotFound)
}
