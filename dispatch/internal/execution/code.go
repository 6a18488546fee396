package execution

import (
	"context"

	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Code is the code of an execution, with its coroutines at the head. The embedded Instance is nil if the execution has
// ended, or if the code cannot run.
type Code struct {
	*replay.Instance

	// Version and FailsOnNondeterminism are options with which the code was registered.
	Version               string
	FailsOnNondeterminism bool
	// broken is the reason for which the code cannot run. Instance is then nil.
	broken error

	provider   provider.Provider
	instanceID string
	ctx        context.Context //nolint:containedctx // of the current invocation
	payloads   payloads.Replay
}

// Loaded reports whether the code is in memory.
func (c *Code) Loaded() bool { return c.Instance != nil }

// Broken returns the reason for which the code cannot run, or nil.
func (c *Code) Broken() error { return c.broken }

// SetContext sets the context for reads of documents and payloads by the code.
func (c *Code) SetContext(ctx context.Context) {
	c.ctx = ctx
	c.payloads.Within(ctx)
}

// Close ends the coroutines.
func (c *Code) Close() {
	if c.Instance != nil {
		c.Instance.Close()
		c.Instance = nil
	}
}
