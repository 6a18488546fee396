package intercept_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/logevent"
)

type (
	call  = intercept.Func[string, int]
	chain = intercept.Chain[string, int]
	next  = func(context.Context) int
)

func newChain(log *slog.Logger, calls ...call) *chain {
	return intercept.New("a test", log, calls, func(c call) call { return c })
}

type key struct{}

// The first interceptor is the outermost. Each interceptor can pass context values to the inner interceptors and to the
// work.
func TestChain_firstInterceptor_isOutermost(t *testing.T) {
	t.Parallel()
	var order []string
	recording := func(name string) call {
		return func(ctx context.Context, info string, next next) {
			order = append(order, name+" of "+info)
			path, _ := ctx.Value(key{}).(string)
			n := next(context.WithValue(ctx, key{}, path+name))
			order = append(order, name+" over")
			if n != 7 {
				t.Errorf("%s got the result %d", name, n)
			}
		}
	}
	got := newChain(slog.Default(), recording("a"), nil, recording("b")).Run(t.Context(), "it",
		func(ctx context.Context) int {
			order = append(order, "work in "+ctx.Value(key{}).(string))
			return 7
		})
	if want := []string{"a of it", "b of it", "work in ab", "b over", "a over"}; got != 7 ||
		!slices.Equal(order, want) {
		t.Errorf("got %d through %q, want %q", got, order, want)
	}
}

// The work runs once and its result is returned, even if an interceptor misbehaves.
func TestChain_misbehavingInterceptor_workRunsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     call
		panics bool
	}{
		"it does not call next": {do: func(context.Context, string, next) {}},
		"it calls next twice": {do: func(ctx context.Context, _ string, next next) {
			if a, b := next(ctx), next(ctx); a != b {
				t.Errorf("%d, then %d", a, b)
			}
		}},
		"it panics before": {do: func(context.Context, string, next) { panic("mine") }, panics: true},
		"it panics after": {do: func(ctx context.Context, _ string, next next) {
			next(ctx)
			panic("mine")
		}, panics: true},
		"it passes on no context":      {do: func(_ context.Context, _ string, next next) { next(nil) }},
		"it calls next on a goroutine": {do: func(ctx context.Context, _ string, next next) { go next(ctx) }},
		"it ends the context of it": {do: func(ctx context.Context, _ string, next next) {
			within, stop := context.WithCancel(ctx)
			stop()
			next(within)
		}},
	} {
		for _, place := range []string{"outermost", "innermost"} {
			t.Run(name+", "+place, func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				others, done := 0, 0
				calls := []call{c.do, func(ctx context.Context, _ string, next next) { others++; next(ctx) }}
				if place == "innermost" {
					slices.Reverse(calls)
				}
				got := newChain(slog.New(slog.NewTextHandler(&log, nil)), calls...).Run(t.Context(), "it",
					func(ctx context.Context) int {
						done++
						if ctx == nil {
							t.Error("the work has no context")
						}
						return 40 + done
					})
				if got != 41 || done != 1 || others != 1 {
					t.Errorf("got %d, done %d times, the other interceptor called %d times", got, done, others)
				}
				if logged := strings.Contains(log.String(), logevent.InterceptorPanicked) &&
					strings.Contains(log.String(), "panic=mine"); logged != c.panics {
					t.Errorf("logged %q", log.String())
				}
			})
		}
	}
}

// A panic of the work propagates unchanged. An interceptor that recovers it does not cause a second run of the work.
func TestChain_workPanics_panicPropagates(t *testing.T) {
	t.Parallel()
	plain := func(ctx context.Context, _ string, next next) { next(ctx) }
	swallows := func(ctx context.Context, _ string, next next) {
		defer func() { _ = recover() }()
		next(ctx)
	}
	for name, c := range map[string]struct {
		calls []call
		want  string
	}{
		"passed on":         {[]call{plain, plain}, "the work's"},
		"swallowed":         {[]call{swallows}, "not its own"},
		"swallowed within":  {[]call{plain, swallows}, "not its own"},
		"swallowed without": {[]call{swallows, plain}, "not its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := 0
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, c.want) || done != 1 {
					t.Errorf("panicked with %q after %d times, want %q after one", got, done, c.want)
				}
			}()
			newChain(slog.New(slog.DiscardHandler), c.calls...).Run(t.Context(), "it", func(context.Context) int {
				done++
				panic("the work's")
			})
		})
	}
}

// If the work ends its goroutine, like t.FailNow, the interceptors also end.
func TestChain_workEndsItsGoroutine_isNotRepeated(t *testing.T) {
	t.Parallel()
	done, returned := 0, false
	over := make(chan struct{})
	go func() {
		defer close(over)
		newChain(slog.Default(), func(ctx context.Context, _ string, next next) {
			next(ctx)
		}).Run(t.Context(), "it", func(context.Context) int {
			done++
			runtime.Goexit()
			return 1
		})
		returned = true
	}()
	<-over
	if done != 1 || returned {
		t.Errorf("the work ran %d times, Run returned %v", done, returned)
	}
}

// Without interceptors, newChain returns nil and Run does not allocate.
func TestChain_withoutInterceptors_allocatesNothing(t *testing.T) {
	none := newChain(slog.Default(), nil, nil)
	ctx := t.Context()
	work := func(context.Context) int { return 1 }
	if n := testing.AllocsPerRun(100, func() { none.Run(ctx, "it", work) }); none != nil || n != 0 {
		t.Errorf("chain %v, %v allocations", none, n)
	}
}

// An interceptor may recover and log, like middleware. The process must still end with the panic value of the work,
// which the diagnosis of poison shows.
func TestChain_interceptorRecoversPanic_originalMessageIsKept(t *testing.T) {
	t.Parallel()
	recovers := func(ctx context.Context, _ string, next next) {
		defer func() { _ = recover() }()
		next(ctx)
	}
	defer func() {
		if output := fmt.Sprint(recover()); !strings.Contains(output, "index out of range of order 7") {
			t.Errorf("the process ends with the panic %q", output)
		}
	}()
	newChain(slog.Default(), recovers).Run(t.Context(), "it", func(context.Context) int {
		panic("index out of range of order 7")
	})
}

// An interceptor that does not return is logged before the invocation ends, because its process may not log anything
// later. Slow work is not logged.
func TestChain_interceptorDoesNotReturn_isLoggedBeforeDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, work, after time.Duration
		named               bool
	}{
		"before": {time.Hour, 0, 0, true}, "after": {0, 0, time.Hour, true}, "the work": {0, time.Hour, 0, false},
		"none": {time.Second, time.Second, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				var log bytes.Buffer
				chain := newChain(slog.New(slog.NewTextHandler(&log, nil)), through,
					func(ctx context.Context, _ string, next next) {
						time.Sleep(c.before)
						next(ctx)
						time.Sleep(c.after)
					})
				chain.Run(ctx, "", func(context.Context) int { time.Sleep(c.work); return 1 })
				synctest.Wait() // waits for the log line
				named := strings.Count(log.String(),
					"interceptor=github.com/perdure/perdure/internal/intercept_test.TestChain_interceptorDoesNotReturn")
				if named != 1 && c.named || !c.named && log.Len() > 0 {
					t.Errorf("the log is %q", log.String())
				}
			})
		})
	}
}

func through(ctx context.Context, _ string, next next) { next(ctx) }
