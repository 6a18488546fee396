package simhub

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/dispatch"
)

// environments holds the environments of the orchestrator function.
type environments struct {
	// Orchestrators are the environments of the orchestrator function. Besides invocations, Environment reads them and
	// Replace changes them.
	Orchestrators []*dispatch.Orchestrator
	replacing     sync.Mutex
}

// Replace replaces the first environments of the orchestrator function, and returns all previous environments. Running
// invocations end with the code with which they started.
func (e *environments) Replace(these ...*dispatch.Orchestrator) (before []*dispatch.Orchestrator) {
	e.replacing.Lock()
	defer e.replacing.Unlock()
	before = slices.Clone(e.Orchestrators)
	copy(e.Orchestrators, these)
	return before
}

// Environment returns the nth environment of the orchestrator function, modulo their number.
func (e *environments) Environment(n int) *dispatch.Orchestrator {
	e.replacing.Lock()
	defer e.replacing.Unlock()
	return e.Orchestrators[n%len(e.Orchestrators)]
}
