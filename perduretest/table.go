package perduretest

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
)

// WithTable adds your own table to the Env's DynamoDB, for data that is written in one transaction with a start
// (client.PrepareStart). Its keys are strings; sortKey is empty if it has none. It has no indexes. Access it with
// TableClient. An empty or used name and an empty partition key fail the test.
func WithTable(name, partitionKey, sortKey string) Option {
	return option(func(o *options) {
		o.tables = append(o.tables, simaws.TableConfig{Name: name, PartitionKey: partitionKey, SortKey: sortKey})
	})
}

// TableClient returns a client of the Env's DynamoDB, which has the tables of WithTable and the hub's table. Its calls
// happen in virtual time. They fail during an Outage, and CrashAt does not count them. Use it from the same goroutines
// as Client.
//
// It supports GetItem, Query, PutItem, UpdateItem, DeleteItem and TransactWriteItems with condition expressions, but
// not every option of them.
func TableClient(env *Env) dynamo.TableAPI {
	env.t.Helper()
	env.deployed.reject(env.t, "TableClient")
	return &bubbleTable{visitor{env.hub.Provider, env}, env.hub.Cloud.Table}
}

// bubbleTable makes the calls of DynamoDB in the bubble.
type bubbleTable struct {
	hub   visitor
	table dynamo.TableAPI
}

// faultOf says what is wrong with the tables of WithTable, beside that of a hub; it is empty where nothing is.
func faultOf(tables []simaws.TableConfig, hub string) string {
	taken := []string{hub}
	for i := range tables {
		t := &tables[i]
		switch {
		case t.Name == "" || slices.Contains(taken, t.Name):
			return fmt.Sprintf("WithTable: table name %q is empty or in use; used names: %q", t.Name, taken)
		case t.PartitionKey == "" || t.PartitionKey == t.SortKey:
			return fmt.Sprintf("WithTable: table %q requires a partition key that differs from its sort key", t.Name)
		}
		taken = append(taken, t.Name)
	}
	return ""
}

type dynamoOption = func(*dynamodb.Options)

func (b *bubbleTable) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...dynamoOption) (*dynamodb.GetItemOutput, error) {
	return call(ctx, b, b.table.GetItem, in, opts)
}

func (b *bubbleTable) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...dynamoOption) (*dynamodb.PutItemOutput, error) {
	return call(ctx, b, b.table.PutItem, in, opts)
}

func (b *bubbleTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...dynamoOption) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, b, b.table.UpdateItem, in, opts)
}

func (b *bubbleTable) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...dynamoOption) (*dynamodb.DeleteItemOutput, error) {
	return call(ctx, b, b.table.DeleteItem, in, opts)
}

func (b *bubbleTable) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...dynamoOption) (*dynamodb.QueryOutput, error) {
	return call(ctx, b, b.table.Query, in, opts)
}

func (b *bubbleTable) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...dynamoOption,
) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, b, b.commit, in, opts)
}

// commit writes a transaction, which may start an instance without a message.
func (b *bubbleTable) commit(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...dynamoOption) (*dynamodb.TransactWriteItemsOutput, error) {
	hub := b.hub.env.hub
	out, err := b.table.TransactWriteItems(ctx, in, opts...)
	if err == nil && slices.ContainsFunc(in.TransactItems, func(w types.TransactWriteItem) bool {
		return w.Put != nil && w.Put.TableName != nil && *w.Put.TableName == hub.Cloud.Table.Name
	}) {
		hub.Sweeper.StartMayBeLost()
	}
	return out, err
}

// call makes one call in the bubble.
func call[In, Out any](
	ctx context.Context, b *bubbleTable, f func(context.Context, *In, ...dynamoOption) (*Out, error), in *In, opts []dynamoOption,
) (out *Out, err error) {
	ctx = b.hub.within(ctx)
	b.hub.env.do(func() { out, err = f(ctx, in, opts...) })
	return out, err
}
