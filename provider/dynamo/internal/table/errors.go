package table

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
