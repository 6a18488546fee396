package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestGo_severalCoroutines_runInOrder(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		var order []string
		see := func(name string, d time.Duration) func(*perdure.OrchestrationContext) {
			return func(ctx *perdure.OrchestrationContext) {
				order = append(order, name+"1")
				if perdure.Sleep(ctx, d) == nil {
					order = append(order, name+"2")
				}
			}
		}
		a, b, c := perdure.Go(ctx, see("a", 2*time.Second)), perdure.Go(ctx, see("b", time.Second)),
			perdure.Go(ctx, see("c", 0))
		order = append(order, "body")
		err := perdure.WhenAll(ctx, a, b, c)
		return strings.Join(order, " "), err
	})
	if got := w.run().replayed().output(); got != `"body a1 b1 c1 c2 b2 a2"` {
		t.Error(got)
	}
}

func TestAsync_valueOrError_isReturnedUnchanged(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		notJSON := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (func() string, error) {
			n, err := perdure.CallActivity(ctx, inc, 1).Await(ctx)
			return func() string { return fmt.Sprint("inc is ", n) }, err
		})
		declined := &declinedError{}
		fails := perdure.Async(ctx, func(*perdure.OrchestrationContext) (int, error) { return 0, declined })
		if i, err := perdure.WhenAny(ctx, notJSON, fails); i != 1 || err != nil {
			return "", fmt.Errorf("winner %d: %w", i, err)
		}
		_, err := fails.Await(ctx)
		if err != error(declined) { //nolint:errorlint // the very error
			return "", fmt.Errorf("another error: %w", err)
		}
		if err := perdure.WhenAll(ctx, fails); !errors.Is(err, declined) {
			return "", fmt.Errorf("another error: %w", err)
		}
		f, err := notJSON.Await(ctx)
		return f(), err
	})
	if got := w.run().replayed().output(); got != `"inc is 2"` {
		t.Error(got)
	}
}

func TestGo_panicOrGoexit_failsOrchestration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code           func()
		kind, wantText string
	}{
		"panic":  {func() { panic("boom") }, history.TypePanic, "TestGo_panicOrGoexit"},
		"goexit": {runtime.Goexit, history.TypeGoexit, "runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
					if perdure.Sleep(ctx, time.Second) == nil {
						tt.code()
					}
				})
				return 1, perdure.Sleep(ctx, time.Hour)
			})
			if f := w.run().replayed().failure(); f.Type != tt.kind || !strings.Contains(f.Message, tt.wantText) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestAsync_futureCancelled_settlesAndCoroutineContinues(t *testing.T) {
	t.Parallel()
	continued := 0
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		f := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
			err := perdure.Sleep(ctx, time.Second)
			continued++
			return 1, err
		})
		f.Cancel("no need")
		err := perdure.Sleep(ctx, time.Hour)
		n, lost := f.Await(ctx)
		return fmt.Sprint(n, " ", lost), err
	})
	if got := w.run().replayed().output(); got != `"0 cancelled (requested): no need"` || continued != 2 {
		t.Errorf("got %s, continued %d times", got, continued)
	}
}

func TestInstanceClose_suspendedCoroutines_unwindInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the bubble fails the test if a coroutine remains
		var order []string
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			for _, name := range []string{"a", "b"} {
				perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
					defer func() { order = append(order, name) }()
					defer func() { _ = perdure.Sleep(ctx, time.Second) }()
					_ = perdure.Sleep(ctx, time.Hour)
				})
			}
			defer func() { order = append(order, "body") }()
			return 1, perdure.Sleep(ctx, time.Hour)
		})
		if !w.instance.Close() || strings.Join(order, " ") != "body a b" {
			t.Error(order)
		}
	})
}

func ExampleAsync() {
	reserve := func(ctx *perdure.OrchestrationContext, item string) (string, error) {
		return perdure.CallActivityByName[string](ctx, "reserve", item).Await(ctx)
	}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "reserve", func(_ context.Context, item string) (string, error) {
		return item + " reserved", nil
	})
	perdure.AddOrchestration(r, "fulfil", func(ctx *perdure.OrchestrationContext, items []string) ([]string, error) {
		var fs []*perdure.Future[string]
		for _, item := range items {
			fs = append(fs, perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (string, error) {
				return reserve(ctx, item)
			}))
		}
		var out []string
		for _, f := range fs {
			s, err := f.Await(ctx)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	})
	fmt.Println(example(r, "fulfil", []string{"book", "pen"}))
	// Output: ["book reserved","pen reserved"]
}
