package table

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// SegmentsQuery returns a query of the segments of an execution.
func SegmentsQuery(executionID string, c provider.Consistency) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		ConsistentRead:            aws.Bool(c == provider.Strong),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: Item{ValuePK: Str(ExecutionPK(executionID)), ValueSK: Str(SKSegments)},
	}
}

// HubQuery returns a query of the hub's own items by the prefix of their sort keys.
func HubQuery(sk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: Item{ValuePK: Str(PKHub), ValueSK: Str(sk)},
	}
}

// Query yields the pages of a query, of up to 1 MB each.
func (t *Table) Query(ctx context.Context, instanceID string, in *dynamodb.QueryInput) iter.Seq2[[]Item, error] {
	return func(yield func([]Item, error) bool) {
		for {
			items, err := t.QueryPage(ctx, instanceID, in)
			if !yield(items, err) || err != nil || in.ExclusiveStartKey == nil {
				return
			}
		}
	}
}

// QueryAll reads all pages of a query.
func (t *Table) QueryAll(ctx context.Context, instanceID string, in *dynamodb.QueryInput) (items []Item, err error) {
	for page, err := range t.Query(ctx, instanceID, in) {
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
	}
	return items, nil
}

// QueryPage reads one page, and sets in's start key to that of the next page, or to nil at the end.
func (t *Table) QueryPage(ctx context.Context, instanceID string, in *dynamodb.QueryInput) ([]Item, error) {
	out, err := t.QueryOnce(ctx, instanceID, in)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// QueryOnce is QueryPage, and returns the whole response.
func (t *Table) QueryOnce(
	ctx context.Context, instanceID string, in *dynamodb.QueryInput,
) (*dynamodb.QueryOutput, error) {
	in.TableName = &t.name
	var out *dynamodb.QueryOutput
	err := awscall.Do(ctx, "DynamoDB.Query", instanceID, func() (err error) {
		out, err = t.api.Query(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
		in.ExclusiveStartKey = nil
	}
	return out, nil
}
