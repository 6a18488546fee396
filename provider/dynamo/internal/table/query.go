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
	return PrefixQuery(ExecutionPK(executionID), SKSegments, c)
}

// PrefixQuery returns a query of the items of a partition whose sort keys have a prefix.
func PrefixQuery(pk, prefix string, c provider.Consistency) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		ConsistentRead:            aws.Bool(c == provider.Strong),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeValues: Item{":pk": Str(pk), ":sk": Str(prefix)},
	}
}

// RangeQuery returns a query of the items of a partition between two sort keys.
func RangeQuery(pk, first, last string, c provider.Consistency) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		ConsistentRead:            aws.Bool(c == provider.Strong),
		KeyConditionExpression:    aws.String("pk = :pk AND sk BETWEEN :sk AND :last"),
		ExpressionAttributeValues: Item{":pk": Str(pk), ":sk": Str(first), ":last": Str(last)},
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

// Items yields the items of a query, which it reads page by page. It ends with the first error.
func (t *Table) Items(ctx context.Context, instanceID string, in *dynamodb.QueryInput) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for page, err := range t.Query(ctx, instanceID, in) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, it := range page {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
}

// Decoded yields decoded items. It continues after an item that cannot be decoded, and ends after a failed read.
func Decoded[T any](items iter.Seq2[Item, error], decode func(Item) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for it, err := range items {
			var v T
			if err == nil {
				v, err = decode(it)
			}
			if !yield(v, err) {
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

// QueryPage reads one page, and sets the start key of in to the start key of the next page, or to nil at the end.
func (t *Table) QueryPage(ctx context.Context, instanceID string, in *dynamodb.QueryInput) ([]Item, error) {
	out, err := t.QueryOnce(ctx, instanceID, in)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// QueryOnce is like QueryPage, but returns the whole response.
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
