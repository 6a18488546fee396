package dispatch_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

var operations = flag.Int("operations", 10_000,
	"number of operations of TestR31_keyWithManyOperations_costStaysConstant")

// callsManyOperations calls an operation of a key many times, up to 500 concurrently. It continues as new after every
// 1,000 calls.
func callsManyOperations(ctx *perdure.OrchestrationContext, left int) (int, error) {
	const atOnce, inAnExecution = 500, 1000
	for done := 0; done < min(left, inAnExecution); done += atOnce {
		var fs []*perdure.Future[int]
		for range min(atOnce, left-done) {
			fs = append(fs, perdure.CallEntity[int](ctx, "sum", "k", "add", 1))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
	}
	if left > inAnExecution {
		return perdure.ContinueAsNew[int](ctx, left-inAnExecution)
	}
	return 0, nil
}

// The cost of an operation does not grow with their number: the entity continues as new, and its state stays small.
func TestR31_keyWithManyOperations_costStaysConstant(t *testing.T) {
	shortrun.Skip(t)
	r := registry()
	perdure.AddOrchestration(r, "pours", callsManyOperations)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("pours", *operations)
		h.serveFor(1000 * time.Hour)
		h.wantStatus(in, provider.StatusCompleted)
		h.wantSum(fmt.Sprintf(`{"Total":%d,"Operations":%d}`, *operations, *operations))
		h.wantEmpty()

		last := h.read(sumInstance)
		events, mostEvents, mostHanded, executions := 0, 0, 0, 0
		for x, err := range h.Provider.ListExecutions(ctx, sumInstance.InstanceID) {
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for e, err := range h.Provider.ReadHistory(ctx, sumInstance.InstanceID, x.ExecutionID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; e.Kind == history.OrchestrationStarted {
					mostHanded = max(mostHanded, len(must(history.Encode([]history.Event{e}))))
				}
			}
			events, mostEvents, executions = events+n, max(mostEvents, n), executions+1
		}
		calls := map[string]int{}
		for _, c := range h.calls {
			calls[c.Service]++
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%d operations: execution %d, %d events, at most %d events per execution, at most %d bytes of state; "+
			"%v calls; %d MB of heap, including the table and all calls",
			*operations, last.ExecutionNumber, events, mostEvents, mostHanded, calls, m.HeapAlloc>>20)
		if want := int64(1 + *operations/1000); last.ExecutionNumber > want || executions != int(last.ExecutionNumber) {
			t.Errorf("the entity is in execution %d of %d, want at most %d", last.ExecutionNumber, executions, want)
		}
		if store := calls["DynamoDB"] + calls["SQS"]; 2*store > 5**operations {
			t.Errorf("got %d calls for %d operations, want at most 2.5 each", store, *operations)
		}
		if mostEvents > 5000 || mostHanded > 256<<10 {
			t.Errorf("got %d events and %d bytes of state in an execution, want at most 5,000 and 256 KiB",
				mostEvents, mostHanded)
		}
	})
}
