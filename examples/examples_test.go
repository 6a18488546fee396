package examples_test

import (
	"testing"

	"github.com/perdure/perdure/examples"
	"github.com/perdure/perdure/internal/registry"
)

// Registering a name twice panics.
func TestRegistry_hasAllExamples(t *testing.T) {
	t.Parallel()
	r := examples.Registry()
	for _, name := range []string{
		"fulfil-order", "ship-order", "count-words", "approve", "keep-tally", "subscribe", "send-letters",
	} {
		if _, ok := (*registry.Registry)(r).Orchestration(name, ""); !ok {
			t.Errorf("%q is not registered", name)
		}
	}
}
