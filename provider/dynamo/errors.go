package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// sameAgain limits the repetitions of a call that conflicted with a transaction, was throttled or got no response. This
// is the only layer that repeats calls. The SDK's own retries, which do not know transaction conflicts, are disabled
// (withoutRetries). Otherwise each call could be made eighteen times.
const (
	sameAgain  = 6
	firstPause = 10 * time.Millisecond
)

var sdkRetryable = retry.IsErrorRetryables(append(retry.DefaultRetryables, throttles()))

func throttles() retry.IsErrorRetryable {
	return retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}
}

// call repeats f as long as the same request may succeed (R7), and adds the operation to the error.
func call(ctx context.Context, op, instanceID string, f func() error) error {
	pause := firstPause
	b := budgetOf(ctx)

	for attempt := 1; ; attempt++ {
		if err := b.spent(); err != nil {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: true, Err: err}
		}
		err := f()
		if err == nil {
			b.earn()
			return nil
		}

		retryable := isRetryable(err)
		if !retryable || attempt == sameAgain || ctx.Err() != nil || !b.spend(err) {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: retryable || ctx.Err() != nil, Err: err}
		}
		if err := sleep.For(ctx, pause/2+rand.N(pause)); err != nil {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: true, Err: err}
		}
		pause *= 2
	}
}

func isRetryable(err error) bool {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return true
	}
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); ok {
		return true
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return onlyTransient(cancelled.CancellationReasons)
	}
	return sdkRetryable.IsErrorRetryable(err) == aws.TrueTernary
}

// onlyTransient reports whether every failure in a transaction is transient. A transaction with a failed condition is
// not repeated, whatever its other failures are.
func onlyTransient(reasons []types.CancellationReason) bool {
	transient := false
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "None":
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			transient = true
		default:
			return false
		}
	}
	return transient
}

// conditionFailed reports whether a transaction failed because of a condition.
func conditionFailed(err error) bool {
	many, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(many.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == refusedCode
	})
}

// refusedCode is DynamoDB's code for the failed condition of a write in a transaction.
const refusedCode = "ConditionalCheckFailed"

// refusedItem returns the stored item that made a condition fail, or nil if there is none. It returns false if err has
// another cause.
func refusedItem(err error, n int) (item, bool) {
	if one, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return one.Item, true
	}
	if many, ok := errors.AsType[*types.TransactionCanceledException](err); ok && n < len(many.CancellationReasons) {
		r := many.CancellationReasons[n]
		return r.Item, aws.ToString(r.Code) == refusedCode
	}
	return nil, false
}
