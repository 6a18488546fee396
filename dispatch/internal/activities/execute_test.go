package activities

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Without interceptors, the feature adds no cost to an activity.
func TestRunCode_noInterceptors_allocatesNothing(t *testing.T) {
	input := json.RawMessage("1")
	plain := registry.Activity{
		Name: "plain",
		Run:  func(context.Context, json.RawMessage) (json.RawMessage, *history.Failure) { return input, nil },
	}
	of, ctx := &task{item: &provider.LockedWorkItem{}}, t.Context()
	plain.Run = body.Intercept(body.ChainOf(nil, nil), plain.Run)
	allocations := testing.AllocsPerRun(100, func() {
		if _, failed := of.runCode(ctx, plain.Run, input); failed != nil {
			t.Error(failed)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
