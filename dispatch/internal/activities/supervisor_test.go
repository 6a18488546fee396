package activities

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// No activity starts after the context of its batch has ended, even before the supervisor is notified.
func TestSupervisor_batchContextEnded_nothingStarts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	record := provider.Record{Hold: provider.NewHold(now, time.Hour)}
	ctx, stop := context.WithCancel(t.Context())
	of := &task{item: &provider.LockedWorkItem{Record: record}, batch: &batch{ctx: ctx}}
	if s := (&supervisor{}); !s.mayStart(of, now) {
		t.Error("it may not start before")
	}
	stop()
	if s := (&supervisor{}); s.mayStart(of, now) {
		t.Error("it may start")
	}
}
