package work

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// Nothing begins once the context of its batch has ended, also before anybody was told so.
func TestNothingBeginsAfterTheEndOfItsBatch(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	record := provider.Record{Hold: provider.NewHold(now, time.Hour)}
	ctx, stop := context.WithCancel(t.Context())
	of := &task{item: &provider.LockedWorkItem{Record: record}, batch: &batch{ctx: ctx}}
	if m := (&manager{}); !m.mayBegin(of, now) {
		t.Error("it may not begin before")
	}
	stop()
	if m := (&manager{}); m.mayBegin(of, now) {
		t.Error("it may begin")
	}
}
