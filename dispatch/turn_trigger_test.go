package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// startsAnother returns a registry with an orchestration that starts a detached orchestration and continues as new. Its
// next execution returns the sum of the carried-over events.
func startsAnother(events int) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "nothing", func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil })
	perdure.AddOrchestration(r, "starts-another", func(ctx *perdure.OrchestrationContext, begun bool) (int, error) {
		if !begun {
			if _, err := perdure.StartOrchestration(ctx, "nothing", 1); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, true)
		}
		sum := 0
		for range events {
			n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
	return r
}

// Interleaving:
//  1. A turn without code consumes an event of a delayed start.
//  2. At the start time, the code starts a detached orchestration and continues as new before it consumes anything. The
//     trigger of that turn is not below any watermark.
//  3. The process crashes after the commit. The redelivered trigger belongs to the next execution, so no message causes
//     a redispatch of the first.
func TestI3_detachedStartInDelayedFirstTurn_survivesCrash(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} { // if late, an event causes the first turn before the timer
		for _, after := range []bool{false, true} {
			t.Run("late="+strconv.FormatBool(late)+"/after="+strconv.FormatBool(after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); crashInDelayedStart(t, late, n, after); n++ {
				}
			})
		}
	}
}

func crashInDelayedStart(t *testing.T, late bool, n int64, after bool) (crashed bool) {
	t.Helper()
	intercept, calls := simhub.CrashAt(n, after)
	inBubble(t, simhub.Options{
		Environments: 2, Registry: startsAnother(2), Intercept: intercept,
	}, func(ctx context.Context, h *hub) {
		const delay = 10 * time.Minute
		s := provider.Start{
			InstanceID: "i-1", Name: "starts-another", Input: encoded(t, false), StartID: "start-1",
			StartAt: time.Now().Add(delay),
		}
		in, err := h.Provider.StartOrchestration(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		h.raise(in, "early", 1)
		if late {
			h.serveFor(delay / 2)
			h.receive(h.Provider.Config().TimersURL)
			time.Sleep(delay)
			h.raise(in, "early", 1) // SQS no longer stores the ID of the first copy, but the instance does
		}
		h.raise(in, "late", 2)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != "3" {
			t.Errorf("crash at call %d: ended with %s, output %s, want 3", n, end.String(), end.Output)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
		h.wantInstances(2)
	})
	return calls.Load() >= n && !t.Failed()
}

// Interleaving:
//  1. An orchestration continues as new more often than one invocation allows, and starts a detached orchestration in
//     each execution.
//  2. The next invocation is caused by an event that arrived in between. The process crashes before any execution
//     consumes the event.
func TestI3_detachedStartAfterTheHundredthExecution_survivesCrash(t *testing.T) {
	t.Parallel()
	var calls []int64 // around the hundredth execution
	crashAfterManyExecutions(t, 0, false, func(number, executions int64) {
		if executions > 97 && executions < 103 {
			calls = append(calls, number)
		}
	})
	if len(calls) < 10 || len(calls) > 100 {
		t.Fatalf("got %d calls, want 10 to 100", len(calls))
	}
	for _, after := range []bool{false, true} {
		for batch := range slices.Chunk(calls, len(calls)/4+1) {
			t.Run("after="+strconv.FormatBool(after), func(t *testing.T) {
				t.Parallel()
				for _, n := range batch {
					crashAfterManyExecutions(t, n, after, func(int64, int64) {})
				}
			})
		}
	}
}

func crashAfterManyExecutions(t *testing.T, n int64, after bool, seen func(number, executions int64)) {
	t.Helper()
	const executions = 106
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "nothing", func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil })
	perdure.AddOrchestration(r, "continues", func(ctx *perdure.OrchestrationContext, left int) (int, error) {
		if left == 0 {
			return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		}
		if left > 9 { // only the executions around the end of an invocation start others
			return perdure.ContinueAsNew[int](ctx, left-1)
		}
		if _, err := perdure.StartOrchestration(ctx, "nothing", left); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, left-1)
	})
	inBubble(t, simhub.Options{
		Registry: r, BatchSize: 1, Intercept: crashAndObserve(n, after, seen),
	}, func(ctx context.Context, h *hub) {
		in := h.start("continues", executions)
		h.raise(in, "e", 7)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != "7" {
			t.Errorf("crash at call %d: ended with %s, output %s, want 7", n, end.String(), end.Output)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
		h.wantInstances(1 + 9)
	})
}

// crashAndObserve kills the function that makes the n-th call of all functions, and passes each call with the number of
// executions to seen.
func crashAndObserve(n int64, after bool, seen func(number, executions int64)) simaws.Interceptor {
	intercept, _ := simhub.CrashAt(n, after)
	var mu sync.Mutex
	var number, begun int64
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if name, _ := simhub.Process(ctx); name != "" {
			mu.Lock()
			number++
			if tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok &&
				tx.TransactItems[len(tx.TransactItems)-1].Update != nil {
				begun++ // the transaction of a start has no update
			}
			seen(number, begun)
			mu.Unlock()
		}
		return intercept(ctx, c, next)
	}
}

// Unobserved events are carried over by reference through more executions than one invocation allows. One more event
// arrives after a hundred executions of the invocation. The process crashes at each call in between, and no event is
// lost.
func TestReferences_eventsCarriedOverHundredExecutions_surviveCrash(t *testing.T) {
	t.Parallel()
	var calls []int64 // around the hundredth execution
	continueWithLetters(t, 0, false, func(number, executions int64) {
		if executions > 98 && executions < 103 {
			calls = append(calls, number)
		}
	})
	if len(calls) < 5 || len(calls) > 100 {
		t.Fatalf("got %d calls, want 5 to 100", len(calls))
	}
	for _, after := range []bool{false, true} {
		t.Run("after="+strconv.FormatBool(after), func(t *testing.T) {
			t.Parallel()
			for _, n := range calls {
				continueWithLetters(t, n, after, func(int64, int64) {})
			}
		})
	}
}

func continueWithLetters(t *testing.T, n int64, after bool, seen func(number, executions int64)) {
	t.Helper()
	const letters, executions = 4, 104
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "continues", func(ctx *perdure.OrchestrationContext, left int) (int, error) {
		if left == executions {
			if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
				return 0, err
			}
		}
		if left > 0 {
			return perdure.ContinueAsNew[int](ctx, left-1)
		}
		for i := range letters {
			got, err := perdure.WaitForExternalEvent[letter](ctx, "add").Await(ctx)
			if err != nil {
				return 0, err
			}
			if got != newLetter(i) {
				return 0, fmt.Errorf("got letter %d, want %d unaltered", got.N, i)
			}
		}
		return letters, nil
	})
	inBubble(t, simhub.Options{
		Registry: r, BatchSize: 1, Intercept: crashAndObserve(n, after, seen),
	}, func(ctx context.Context, h *hub) {
		in := h.start("continues", executions)
		h.post(in, letters-1)
		h.turn(0)
		h.send(provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "go",
			Data: encoded(t, 1),
		})
		h.send(provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "the last",
			Data: encoded(t, newLetter(letters-1)),
		})
		h.serveFor(2 * time.Hour)
		h.wantAll(ctx, in, letters)
		h.wantStoredOnce(in, letters+1) // and the event that starts it
	})
}
