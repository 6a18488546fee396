package table

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// MaxTransactionItems is the maximum number of items of a transaction (a DynamoDB quota).
const MaxTransactionItems = 100

// NotExists is the condition that an item does not exist.
const NotExists = "attribute_not_exists(" + AttrPK + ")"

// Puts returns writes of items for a transaction.
func Puts(items []Item) []types.TransactWriteItem {
	writes := make([]types.TransactWriteItem, len(items))
	for i, it := range items {
		writes[i].Put = &types.Put{Item: it}
	}
	return writes
}

// RequireAbsent adds the condition that the item does not exist to a write of a transaction. If the condition fails,
// FailedItem returns the existing item.
func RequireAbsent(put *types.Put) {
	put.ConditionExpression = aws.String(NotExists)
	put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
}

// Transact writes a transaction.
//
// The SDK adds a ClientRequestToken to an input without one, so every try of this call has the same token. For ten
// minutes DynamoDB responds to a repetition of a completed transaction with success
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html). Each try is encoded
// again, and DynamoDB does not document whether a different order of a map's entries makes the request a different one.
// If DynamoDB rejects a try as a different request, Transact repeats it without the token. The conditions then report
// the existing items, as for a try by another process.
func (t *Table) Transact(ctx context.Context, instanceID string, writes []types.TransactWriteItem) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: t.SetTableName(writes)}
	return awscall.Do(ctx, "DynamoDB.TransactWriteItems", instanceID, func() error {
		_, err := t.api.TransactWriteItems(ctx, in)
		if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](err); ok {
			in.ClientRequestToken = nil
			_, err = t.api.TransactWriteItems(ctx, in)
		}
		return err
	})
}

// TransactOnce writes a transaction without retries.
func (t *Table) TransactOnce(ctx context.Context, writes []types.TransactWriteItem) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: t.SetTableName(writes)}
	_, err := t.api.TransactWriteItems(ctx, in)
	return err
}

// SetTableName sets the name of the table in writes, and returns the writes.
func (t *Table) SetTableName(writes []types.TransactWriteItem) []types.TransactWriteItem {
	for i := range writes {
		switch w := &writes[i]; {
		case w.Put != nil:
			w.Put.TableName = &t.name
		case w.Update != nil:
			w.Update.TableName = &t.name
		case w.Delete != nil:
			w.Delete.TableName = &t.name
		case w.ConditionCheck != nil:
			w.ConditionCheck.TableName = &t.name
		}
	}
	return writes
}

// ConditionFailed reports whether a transaction failed because of a condition.
func ConditionFailed(err error) bool {
	many, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(many.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == ConditionFailedCode
	})
}

// ConditionFailedCode is DynamoDB's code for the failed condition of a write in a transaction.
const ConditionFailedCode = "ConditionalCheckFailed"

// FailedItem returns the stored item that made a condition fail, or nil if there is none. It returns false if err has
// another cause.
func FailedItem(err error, n int) (Item, bool) {
	if one, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return one.Item, true
	}
	if many, ok := errors.AsType[*types.TransactionCanceledException](err); ok && n < len(many.CancellationReasons) {
		r := many.CancellationReasons[n]
		return r.Item, aws.ToString(r.Code) == ConditionFailedCode
	}
	return nil, false
}
