// Package awscall makes calls to AWS. It retries calls that failed temporarily, limits the retries of an operation, and
// runs calls concurrently.
package awscall

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// ErrUnsupported means that the client does not implement an optional call.
var ErrUnsupported = errors.New("client does not support this operation")

// OperatorTimeout limits a call for an operator, which has no invocation deadline.
const OperatorTimeout = time.Minute

// DoWithTimeout is Do with a time limit. A call that times out may still succeed.
func DoWithTimeout(ctx context.Context, op string, f func(ctx context.Context) error) error {
	limited, stop := context.WithTimeout(ctx, OperatorTimeout)
	defer stop()
	return Do(limited, op, "", func() error { return f(limited) })
}

// MaxTries limits the repetitions of a call that conflicted with a transaction, was throttled or got no response. This
// is the only layer that repeats AWS calls. The function adapt of package dynamo disables the three tries of the SDK,
// which do not support transaction conflicts. Together, both could make a call eighteen times.
const (
	MaxTries   = 6
	FirstPause = 10 * time.Millisecond
)

// Do repeats f while the same request may succeed (R7), and adds the operation to the error.
func Do(ctx context.Context, op, instanceID string, f func() error) error {
	pause := FirstPause
	b := budgetOf(ctx)

	for attempt := 1; ; attempt++ {
		if err := b.exhausted(); err != nil {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: true, Err: err}
		}
		err := f()
		if err == nil {
			b.succeeded()
			return nil
		}

		retryable := IsRetryable(err)
		if !retryable || attempt == MaxTries || ctx.Err() != nil || !b.retry(err) {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: retryable || ctx.Err() != nil, Err: err}
		}
		if err := sleep.For(ctx, pause/2+rand.N(pause)); err != nil {
			return &provider.Error{Op: op, InstanceID: instanceID, Retryable: true, Err: err}
		}
		pause *= 2
	}
}

// IsRetryable reports whether the same request may succeed later.
func IsRetryable(err error) bool {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return true
	}
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); ok {
		return true
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return onlyTransient(cancelled.CancellationReasons)
	}
	return awsrequest.IsTransient(err)
}

// onlyTransient reports whether every failure in a transaction is transient. A transaction with a failed condition is
// not repeated, even if its other failures are transient.
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
