package sweeper

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
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

func TestForEach_limitsConcurrency(t *testing.T) {
	t.Parallel()
	var running, most, calls atomic.Int32
	forEach(t.Context(), make([]int, 50), 3, func(int) {
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
