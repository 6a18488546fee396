// Package table reads and writes the DynamoDB table of a hub. It defines the keys and attributes of all items, and the
// calls with their retries. Other packages define the meaning of the items.
package table

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// API contains the DynamoDB calls of a Table.
type API interface {
	GetItem(
		ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.GetItemOutput, error)
	PutItem(
		ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.PutItemOutput, error)
	UpdateItem(
		ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(
		ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// Table makes the calls to the table of a hub. Its methods set the name of the table in their inputs, and repeat calls
// that failed temporarily. It is safe for concurrent use.
type Table struct {
	api  API
	name string
}

// New returns the table with a name.
func New(api API, name string) *Table { return &Table{api: api, name: name} }

// Get reads an item. The item is empty if it does not exist.
func (t *Table) Get(ctx context.Context, instanceID string, key Item, c provider.Consistency) (Item, error) {
	in := &dynamodb.GetItemInput{TableName: &t.name, Key: key, ConsistentRead: aws.Bool(c == provider.Strong)}
	var out *dynamodb.GetItemOutput
	err := awscall.Do(ctx, "DynamoDB.GetItem", instanceID, func() (err error) {
		out, err = t.api.GetItem(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// GetExecutionItem reads an item of an execution with strong consistency. The item is empty if it does not exist.
func (t *Table) GetExecutionItem(ctx context.Context, executionID, sk string) (Item, error) {
	return t.Get(ctx, "", ExecutionKey(executionID, sk), provider.Strong)
}

// Put writes an item.
func (t *Table) Put(ctx context.Context, instanceID string, in *dynamodb.PutItemInput) error {
	in.TableName = &t.name
	return awscall.Do(ctx, "DynamoDB.PutItem", instanceID, func() error {
		_, err := t.api.PutItem(ctx, in)
		return err
	})
}

// PutItem writes an item without a condition.
func (t *Table) PutItem(ctx context.Context, instanceID string, it Item) error {
	return t.Put(ctx, instanceID, &dynamodb.PutItemInput{Item: it})
}

// Update updates an item.
func (t *Table) Update(ctx context.Context, instanceID string, in *dynamodb.UpdateItemInput) error {
	_, err := t.UpdateReturning(ctx, instanceID, in)
	return err
}

// UpdateReturning updates an item, and returns the attributes that ReturnValues selects.
func (t *Table) UpdateReturning(
	ctx context.Context, instanceID string, in *dynamodb.UpdateItemInput,
) (attributes Item, err error) {
	in.TableName = &t.name
	err = awscall.Do(ctx, "DynamoDB.UpdateItem", instanceID, func() error {
		out, err := t.api.UpdateItem(ctx, in)
		if err == nil {
			attributes = out.Attributes
		}
		return err
	})
	return attributes, err
}

// UpdateIf updates an item, and returns the attributes that ReturnValues selects. It does nothing if the condition
// fails.
func (t *Table) UpdateIf(
	ctx context.Context, instanceID string, in *dynamodb.UpdateItemInput,
) (attributes Item, updated bool, err error) {
	attributes, err = t.UpdateReturning(ctx, instanceID, in)
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed {
		return nil, false, nil
	}
	return attributes, err == nil, err
}

// Delete deletes an item.
func (t *Table) Delete(ctx context.Context, instanceID string, in *dynamodb.DeleteItemInput) error {
	in.TableName = &t.name
	return awscall.Do(ctx, "DynamoDB.DeleteItem", instanceID, func() error {
		_, err := t.api.DeleteItem(ctx, in)
		return err
	})
}

// DeleteItem deletes an item without a condition. It returns nil if the item does not exist.
func (t *Table) DeleteItem(ctx context.Context, instanceID string, key Item) error {
	return t.Delete(ctx, instanceID, &dynamodb.DeleteItemInput{Key: key})
}
