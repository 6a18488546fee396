package sweeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perdure/perdure/provider"
)

// Errors after the end of a sweep are not failures, and the number of returned errors is limited.
func TestResult_countsItems(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var r result
	r.add(ctx, nil)
	for range maxErrors + 5 {
		r.add(ctx, errors.New("outage"))
	}
	stop()
	r.add(ctx, errors.New("late"))
	if r.done != 1 || r.failed != maxErrors+5 || len(r.errs) != maxErrors || !r.cutShort {
		t.Errorf("%d done, %d failed, %d errors, cut short: %v", r.done, r.failed, len(r.errs), r.cutShort)
	}
}

func TestResult_unsupported_isNoFailure(t *testing.T) {
	t.Parallel()
	var r result
	r.add(t.Context(), fmt.Errorf("sweep: %w", provider.UnsupportedError{Capability: provider.CapabilityRetention}))
	if r.done != 0 || r.failed != 0 {
		t.Errorf("a missing interface: %d done, %d failed", r.done, r.failed)
	}
	r.add(t.Context(), fmt.Errorf("dial: %w", syscall.EOPNOTSUPP))
	if r.failed != 1 {
		t.Errorf("an error of the operating system: %d failed", r.failed)
	}
}

func TestForEach_limitsConcurrency(t *testing.T) {
	t.Parallel()
	var running, most, calls atomic.Int32
	forEach(t.Context(), slices.Values(make([]int, 50)), 3, func(int) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		calls.Add(1)
		running.Add(-1)
	})
	if calls.Load() != 50 || most.Load() > 3 {
		t.Errorf("%d calls, up to %d at once", calls.Load(), most.Load())
	}
}
