package inside

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// Table runs calls of DynamoDB in the bubble.
type Table struct {
	hub   hub
	table dynamo.TableAPI
	name  string // name of the hub's table
}

// NewTable returns the tables of an Env, including the table of the hub.
func NewTable(table dynamo.TableAPI, hubTable string, b Bubble) *Table {
	return &Table{hub{nil, b}, table, hubTable}
}

type dynamoOption = func(*dynamodb.Options)

// GetItem implements dynamo.TableAPI.
func (b *Table) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...dynamoOption,
) (*dynamodb.GetItemOutput, error) {
	return call(ctx, b, b.table.GetItem, in, opts)
}

// PutItem implements dynamo.TableAPI.
func (b *Table) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...dynamoOption,
) (*dynamodb.PutItemOutput, error) {
	return call(ctx, b, b.table.PutItem, in, opts)
}

// UpdateItem implements dynamo.TableAPI.
func (b *Table) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...dynamoOption,
) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, b, b.table.UpdateItem, in, opts)
}

// DeleteItem implements dynamo.TableAPI.
func (b *Table) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...dynamoOption,
) (*dynamodb.DeleteItemOutput, error) {
	return call(ctx, b, b.table.DeleteItem, in, opts)
}

// Query implements dynamo.TableAPI.
func (b *Table) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...dynamoOption,
) (*dynamodb.QueryOutput, error) {
	return call(ctx, b, b.table.Query, in, opts)
}

// TransactWriteItems implements dynamo.TableAPI.
func (b *Table) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...dynamoOption,
) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, b, b.commit, in, opts)
}

// commit writes a transaction. It may start an instance without a wake.
func (b *Table) commit(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...dynamoOption,
) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := b.table.TransactWriteItems(ctx, in, opts...)
	if err == nil && slices.ContainsFunc(in.TransactItems, func(w types.TransactWriteItem) bool {
		return w.Put != nil && w.Put.TableName != nil && *w.Put.TableName == b.name
	}) {
		b.hub.bubble.StartMayBeLost()
	}
	return out, err
}

// call runs a call in the bubble.
func call[In, Out any](
	ctx context.Context, b *Table, f func(context.Context, *In, ...dynamoOption) (*Out, error), in *In,
	opts []dynamoOption,
) (out *Out, err error) {
	b.hub.run(ctx, func(ctx context.Context) { out, err = f(ctx, in, opts...) })
	return out, err
}
