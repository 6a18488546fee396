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

var operations = flag.Int("operations", 10_000, "of TestR31AKeyOfManyOperations: how many operations")

// pours calls an operation of a key many times, some hundred at once, and continues as new in between.
func pours(ctx *perdure.OrchestrationContext, left int) (int, error) {
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

// What an operation of a key costs does not grow with how many there were: the entity continues as new, and what it hands over stays small.
func TestR31AKeyOfManyOperations(t *testing.T) {
	shortrun.Skip(t)
	r := registry()
	perdure.AddOrchestration(r, "pours", pours)
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
		t.Logf("%d operations: execution %d, %d events, at most %d in an execution, at most %d bytes handed over; %v calls; %d MB of heap, with the table and all calls",
			*operations, last.ExecutionNumber, events, mostEvents, mostHanded, calls, m.HeapAlloc>>20)
		if want := int64(1 + *operations/1000); last.ExecutionNumber > want || executions != int(last.ExecutionNumber) {
			t.Errorf("it is in execution %d of %d, want %d at the most", last.ExecutionNumber, executions, want)
		}
		if store := calls["DynamoDB"] + calls["SQS"]; 2*store > 5**operations {
			t.Errorf("%d calls for %d operations", store, *operations)
		}
		if mostEvents > 5000 || mostHanded > 256<<10 {
			t.Errorf("an execution has %d events, and is handed %d bytes", mostEvents, mostHanded)
		}
	})
}
