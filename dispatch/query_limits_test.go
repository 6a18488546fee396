package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A query handler that hangs occupies a goroutine, and possibly a processor. The process stops calling it after three
// calls that have not returned.
func TestQuery_handlerHangsRepeatedly_isNotCalled(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts(), TurnTimeout: time.Second}, func(_ context.Context, h *hub) {
		h.start("counting", 1)
		h.turn(0)
		for range 3 {
			h.wantQueryError("blocks", "0", provider.QueryHandlerTimedOut, "within 1s")
		}
		before := time.Now()
		h.wantQueryError("blocks", "0", provider.QueryHandlerTimedOut, "3 earlier calls",
			"not called until one returns")
		if took := time.Since(before); took >= time.Second {
			t.Errorf("got duration %v: the handler was called again", took)
		}
		h.wantQueryResult("received", "0", "0") // other handlers still run

		time.Sleep(time.Hour) // the handlers return
		h.wantQueryError("blocks", "0", provider.QueryHandlerTimedOut, "within 1s")
		time.Sleep(time.Hour)
	})
}

// Two handlers of one instance hang in the same process. Each error names the line of its own handler.
func TestQuery_twoHandlersHang_errorsNameTheirOwnLines(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "two", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		first := func(struct{}) (int, error) { time.Sleep(time.Hour); return 1, nil }
		second := func(struct{}) (int, error) { time.Sleep(2 * time.Hour); return 1, nil }
		err := errors.Join(perdure.SetQueryHandler(ctx, "first", first), perdure.SetQueryHandler(ctx, "second", second))
		if err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, TurnTimeout: time.Second}, func(_ context.Context, h *hub) {
		h.start("two", 1)
		h.turn(0)
		h.wantQueryError("second", "", provider.QueryHandlerTimedOut, "func1.2 (dispatch/query_limits_test.go:")
		e := h.wantQueryError("first", "", provider.QueryHandlerTimedOut, "func1.1 (dispatch/query_limits_test.go:")
		if strings.Contains(e.Message, "func1.2") {
			t.Errorf("the error names the other handler: %v", e)
		}
		time.Sleep(2 * time.Hour) // the handlers return
	})
}

// Each query holds a history in memory. A process runs four queries concurrently. The others wait until their deadline.
func TestQuery_manyConcurrent_fourRunAtATime(t *testing.T) {
	t.Parallel()
	var now, over atomic.Int64
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "slow", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if err := perdure.SetQueryHandler(ctx, "slow", func(struct{}) (int, error) {
			if now.Add(1) > 4 {
				over.Add(1)
			}
			defer now.Add(-1)
			time.Sleep(time.Second)
			return 1, nil
		}); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		h.start("slow", 1)
		h.turn(0)
		queryInstance := func(ctx context.Context) (json.RawMessage, error) {
			return h.Orchestrators[0].QueryInstance(ctx, provider.QueryRequest{InstanceID: "i-1", Name: "slow"})
		}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				if response, err := queryInstance(ctx); err != nil || string(response) != "1" {
					t.Errorf("got %s, %v, want 1", response, err)
				}
			})
		}
		synctest.Wait()
		if n := now.Load(); n != 4 {
			t.Errorf("got %d concurrent queries, want 4", n)
		}
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		defer stop()
		if _, err := queryInstance(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("query with a short deadline: got error %v, want DeadlineExceeded", err)
		}
		wg.Wait()
		if n := over.Load(); n != 0 {
			t.Errorf("got %d queries beyond the limit of 4, want 0", n)
		}
	})
}

// The error for an unknown query lists at most 100 handlers. A response over Lambda's limit would count as an error of
// the build.
func TestQuery_unknownNameOfVeryMany_errorListsAHundred(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "many", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			if err := perdure.SetQueryHandler(ctx, fmt.Sprintf("%0250d", i), func(struct{}) (int, error) {
				return i, nil
			}); err != nil {
				return 0, err
			}
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		h.start("many", 1000)
		h.turn(0)
		e := h.wantQueryError("none", "", provider.QueryHandlerNotFound, "and 900 more")
		if len(e.Known) != 100 || len(e.Message) > 30_000 {
			t.Errorf("got %d names and a message of %d bytes, want 100 names in at most 30,000 bytes",
				len(e.Known), len(e.Message))
		}
		h.wantQueryResult(fmt.Sprintf("%0250d", 999), "", "999")
	})
}
