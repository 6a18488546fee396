package awscall

import (
	"context"
	"fmt"
	"sync"
)

// freeRetries is the number of repetitions that an operation with several calls may make in excess of its successful
// calls. With the sixteen concurrent calls of a list, a table that throttles everything receives twenty calls.
const freeRetries = 4

// retryBudget limits the repetitions of an operation with concurrent calls. Otherwise each call would be repeated
// separately while the table is overloaded. A nil budget has no limit.
type retryBudget struct {
	mu      sync.Mutex
	left    int
	lastErr error // the error of the last call that was not repeated
}

type retryBudgetKey struct{}

// WithRetryBudget returns a context for an operation with a new budget.
func WithRetryBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, retryBudgetKey{}, &retryBudget{left: freeRetries})
}

func budgetOf(ctx context.Context) *retryBudget {
	b, _ := ctx.Value(retryBudgetKey{}).(*retryBudget)
	return b
}

// exhausted returns the reason for which the operation may make no more calls, or nil if it may continue.
func (b *retryBudget) exhausted() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastErr == nil {
		return nil
	}
	return fmt.Errorf("retry budget exhausted, last error: %w", b.lastErr)
}

// succeeded records a successful call.
func (b *retryBudget) succeeded() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// retry reports whether a failed call may be repeated.
func (b *retryBudget) retry(err error) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 || b.lastErr != nil {
		b.lastErr = err
		return false
	}
	b.left--
	return true
}
