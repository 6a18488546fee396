package simhub

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/dispatch"
)

// environments are those of the orchestrator function.
type environments struct {
	// Orchestrators are the orchestrator function's environments. Beside invocations they are read by Environment and changed by Replace.
	Orchestrators []*dispatch.Orchestrator
	replacing     sync.Mutex
}

// Replace has orchestrators take the place of the first of the function's environments, and returns all that were there before. Invocations
// that are under way end with the code that they began with.
func (e *environments) Replace(these ...*dispatch.Orchestrator) (before []*dispatch.Orchestrator) {
	e.replacing.Lock()
	defer e.replacing.Unlock()
	before = slices.Clone(e.Orchestrators)
	copy(e.Orchestrators, these)
	return before
}

// Environment is the nth of the orchestrator function's environments: behind the last the first comes again.
func (e *environments) Environment(n int) *dispatch.Orchestrator {
	e.replacing.Lock()
	defer e.replacing.Unlock()
	return e.Orchestrators[n%len(e.Orchestrators)]
}
