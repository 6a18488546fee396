// Package sleep waits for a duration or the end of a context.
package sleep

import (
	"context"
	"time"
)

// For waits for d. If ctx ends first, For returns the cause of its end.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
