package intercept_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/logevent"
)

type listener = func(ctx context.Context, info string)

func newListeners(log *slog.Logger, calls ...listener) *intercept.Listeners[string] {
	return intercept.NewListeners("a test", log, calls, func(l listener) listener { return l })
}

// All listeners are called in order, even if one of them panics.
func TestListeners_oneOfThemPanics_othersAreCalledInOrder(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var reported []string
	listens := func(name string) listener {
		return func(_ context.Context, info string) { reported = append(reported, name+" "+info) }
	}
	l := newListeners(slog.New(slog.NewTextHandler(&log, nil)), nil, listens("a"), func(context.Context, string) {
		panic("mine")
	}, listens("b"))
	l.Notify(t.Context(), "it")
	if !slices.Equal(reported, []string{"a it", "b it"}) {
		t.Errorf("notified %q", reported)
	}
	if !strings.Contains(log.String(), logevent.InterceptorPanicked) || !strings.Contains(log.String(), "panic=mine") ||
		!strings.Contains(log.String(), `around="a test"`) {
		t.Errorf("logged %q", log.String())
	}
	names, own := l.Names(), "TestListeners_oneOfThemPanics_othersAreCalledInOrder"
	if len(names) != 3 || !strings.Contains(names[1], own) {
		t.Errorf("names %q", names)
	}
}

// Without listeners, newListeners returns nil and Notify does not allocate.
func TestListeners_none_allocateNothing(t *testing.T) {
	none := newListeners(slog.Default(), nil, nil)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { none.Notify(ctx, "it") }); none != nil || n != 0 || none.Names() != nil {
		t.Errorf("listeners %v, %v allocations", none, n)
	}
}

// A listener that does not return is logged before the invocation ends.
func TestListeners_oneDoesNotReturn_isLoggedBeforeDeadline(t *testing.T) {
	t.Parallel()
	for hangs, named := range map[time.Duration]int{time.Hour: 1, time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var log bytes.Buffer
			newListeners(slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, string) {},
				func(context.Context, string) {
					time.Sleep(hangs)
				}).Notify(ctx, "it")
			synctest.Wait() // waits for the log line
			const line = "interceptor=github.com/perdure/perdure/internal/intercept_test.TestListeners_oneDoesNotReturn"
			if got := strings.Count(log.String(), line); got != named {
				t.Errorf("hangs for %v: the log is %q", hangs, log.String())
			}
		})
	}
}
