// Package sleep waits, as long as it is worth it.
package sleep

import (
	"context"
	"time"
)

// For waits for so long. When ctx ends before it returns the cause of that.
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
