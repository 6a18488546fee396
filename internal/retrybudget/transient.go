package retrybudget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// IsTransient reports whether a call of a provider failed in a way that can be retried.
func IsTransient(err error) bool {
	failed, ok := errors.AsType[*provider.Error](err)
	return ok && failed.Retryable
}

// ServiceOf returns the service whose call failed, such as "DynamoDB", or an empty string if it is unknown.
func ServiceOf(err error) string {
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

// ErrCallTimeout is the cause of a call that WithTimeout stopped.
var ErrCallTimeout = errors.New("call timed out")

// WithTimeout calls f with a timeout. If the timeout stops f, the error is a transient *provider.Error that wraps
// ErrCallTimeout. op names the call if the error of f does not.
func WithTimeout(
	ctx context.Context, timeout time.Duration, op, instanceID string, f func(ctx context.Context) error,
) error {
	limited, stop := context.WithTimeoutCause(ctx, timeout, ErrCallTimeout)
	defer stop()
	err := f(limited)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if failed, ok := errors.AsType[*provider.Error](err); ok {
		op = failed.Op
	}
	return &provider.Error{
		Op: op, InstanceID: instanceID, Retryable: true,
		Err: fmt.Errorf("%w after %v: %w", ErrCallTimeout, timeout, err),
	}
}
