package work

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
)

// Where there are no interceptors, an activity runs as if there were no such thing.
func TestNoInterceptorsAllocateNothingForAnActivity(t *testing.T) {
	input := json.RawMessage("1")
	plain := registry.Activity{Name: "plain", Run: func(context.Context, json.RawMessage) (json.RawMessage, *history.Failure) { return input, nil }}
	a, of, ctx := &admission{interceptors: interceptorsOf(&Options{})}, &task{}, t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		if _, failed := of.runWithin(ctx, a.intercepted(plain), input); failed != nil {
			t.Error(failed)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
