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

// sameAgain bounds how often a call is made that lost against a concurrent transaction, was throttled or got lost. It
// is the only layer that repeats: the SDK's own retries, which do not know transaction conflicts, are off
// (withoutRetries); otherwise each call would be made eighteen times.
const (
	sameAgain  = 6
	firstPause = 10 * time.Millisecond
)

var sdkRetryable = retry.IsErrorRetryables(append(retry.DefaultRetryables, throttles()))

func throttles() retry.IsErrorRetryable {
	return retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}
}

// call repeats f while the same request may yet succeed (R7), and names the operation in the error that it returns.
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

// onlyTransient reports whether every failure in a transaction is transient: one that failed a condition is not worth
// repeating, whatever else it met.
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

// conditionFailed reports whether a transaction failed because of one of its conditions.
func conditionFailed(err error) bool {
	many, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(many.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == refusedCode
	})
}

// refusedCode is what DynamoDB says of the write of a transaction whose condition did not hold.
const refusedCode = "ConditionalCheckFailed"

// refusedItem returns the item that made a condition fail, as it is stored (nil: it does not exist); false when err has
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
