package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/provider"
)

// Stall reports that calls fail and are being retried.
type Stall struct {
	// Service is the service that rejects calls or does not respond, such as "DynamoDB". It is empty if unknown.
	Service string
	// Elapsed is the time since the last successful call.
	Elapsed time.Duration
	// Err is the latest error.
	Err error
}

// retryBudget returns the retry budget of an operation. onStall may be nil.
func (c *Client) retryBudget(onStall func(Stall)) *retrybudget.Budget {
	if onStall == nil {
		return retrybudget.New(c.now, c.sleep, nil)
	}
	return retrybudget.New(c.now, c.sleep, func(elapsed time.Duration, err error) {
		onStall(Stall{Service: serviceOf(err), Elapsed: elapsed, Err: err})
	})
}

// serviceOf returns which service a call that failed was for.
func serviceOf(err error) string {
	failed, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return ""
	}
	service, _, named := strings.Cut(failed.Op, ".")
	if !named {
		return ""
	}
	return service
}

// mayYetSucceed reports whether a call has failed that is worth repeating.
func mayYetSucceed(err error) bool {
	failed, ok := errors.AsType[*provider.Error](err)
	return ok && failed.Retryable
}

// errTooLong reports a call that was given up, since it took too long.
var errTooLong = errors.New("call timed out")

// within calls f with a time limit. A call that was given up for it may yet succeed.
func within(ctx context.Context, limit time.Duration, op, instanceID string, f func(ctx context.Context) error) error {
	limited, stop := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer stop()
	err := f(limited)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if failed, ok := errors.AsType[*provider.Error](err); ok {
		op = failed.Op
	}
	return &provider.Error{
		Op: op, InstanceID: instanceID, Retryable: true, Err: fmt.Errorf("%w after %v: %w", errTooLong, limit, err),
	}
}
