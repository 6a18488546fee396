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

// A handler that does not come back keeps its goroutine, and may keep a processor, from the turns of its process: it is not called for ever.
func TestAHandlerThatHangsIsNotCalledForEver(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts(), TurnLimit: time.Second}, func(_ context.Context, h *hub) {
		h.start("counting", 1)
		h.turn(0)
		for range 3 {
			h.wantNoAnswer("blocks", "0", provider.QueryHandlerTimedOut, "within 1s")
		}
		before := time.Now()
		h.wantNoAnswer("blocks", "0", provider.QueryHandlerTimedOut, "3 earlier calls", "not called until one returns")
		if took := time.Since(before); took >= time.Second {
			t.Errorf("it took %v: it was called once more", took)
		}
		h.wantAsked("heard", "0", "0") // another has nothing to do with it

		time.Sleep(time.Hour) // they have come back
		h.wantNoAnswer("blocks", "0", provider.QueryHandlerTimedOut, "within 1s")
		time.Sleep(time.Hour)
	})
}

// Where a handler hangs is not taken for where another does, of the same instance in the same process: nor would it be for that of a turn.
func TestAHandlerThatHangsIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "two", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		first := func(struct{}) (int, error) { time.Sleep(time.Hour); return 1, nil }
		second := func(struct{}) (int, error) { time.Sleep(2 * time.Hour); return 1, nil }
		if err := errors.Join(perdure.SetQueryHandler(ctx, "first", first), perdure.SetQueryHandler(ctx, "second", second)); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, TurnLimit: time.Second}, func(_ context.Context, h *hub) {
		h.start("two", 1)
		h.turn(0)
		h.wantNoAnswer("second", "", provider.QueryHandlerTimedOut, "func1.2 (dispatch/asklimit_test.go:")
		if e := h.wantNoAnswer("first", "", provider.QueryHandlerTimedOut, "func1.1 (dispatch/asklimit_test.go:"); strings.Contains(e.Message, "func1.2") {
			t.Error(e)
		}
		time.Sleep(2 * time.Hour) // they have come back
	})
}

// Each query holds a history: a process answers a few at once, and the others wait for as long as they have time.
func TestAFewQueriesAreAnsweredAtOnce(t *testing.T) {
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
		ask := func(ctx context.Context) (json.RawMessage, error) {
			return h.Orchestrators[0].QueryInstance(ctx, provider.QueryRequest{InstanceID: "i-1", Name: "slow"})
		}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				if answer, err := ask(ctx); err != nil || string(answer) != "1" {
					t.Errorf("%s, %v", answer, err)
				}
			})
		}
		synctest.Wait()
		if n := now.Load(); n != 4 {
			t.Errorf("%d are answered at once", n)
		}
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		defer stop()
		if _, err := ask(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without time to wait: %v", err)
		}
		wg.Wait()
		if n := over.Load(); n != 0 {
			t.Errorf("%d more than 4 were answered at once", n)
		}
	})
}

// Code that sets a handler for each of very many things names a part of them: an answer over the limit of Lambda would be the build's error.
func TestAnUnknownQueryIsToldAPartOfVeryManyNames(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "many", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for i := range n {
			if err := perdure.SetQueryHandler(ctx, fmt.Sprintf("%0250d", i), func(struct{}) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		h.start("many", 1000)
		h.turn(0)
		e := h.wantNoAnswer("none", "", provider.QueryHandlerNotFound, "and 900 more")
		if len(e.Known) != 100 || len(e.Message) > 30_000 {
			t.Errorf("%d names, a text of %d bytes", len(e.Known), len(e.Message))
		}
		h.wantAsked(fmt.Sprintf("%0250d", 999), "", "999")
	})
}
