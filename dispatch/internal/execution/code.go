package execution

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Code is the code of an execution, with its coroutines at the head.
type Code struct {
	instance *replay.Instance // nil if the execution has ended, or if the code cannot run
	version  string
	// failOnNondeterminism is an option with which the code was registered.
	failOnNondeterminism bool
	// broken is the reason for which the code cannot run. instance is then nil.
	broken error

	provider   provider.Provider
	instanceID string
	ctx        context.Context //nolint:containedctx // of the invocation in which the code runs: replay knows of none
	payloads   payloads.Replay
}

// Loaded reports whether the code is in memory.
func (c *Code) Loaded() bool { return c.instance != nil }

// Version returns the version with which the code was registered.
func (c *Code) Version() string { return c.version }

// FailsOnNondeterminism reports whether the code was registered with FailOnNondeterminism.
func (c *Code) FailsOnNondeterminism() bool { return c.failOnNondeterminism }

// Broken returns the reason for which the code cannot run, or nil.
func (c *Code) Broken() error { return c.broken }

// Within sets the context for reads of documents and payloads by the code.
func (c *Code) Within(ctx context.Context) {
	c.ctx = ctx
	c.payloads.Within(ctx)
}

// Run runs a turn of the code.
func (c *Code) Run(t replay.Turn) (replay.Outcome, error) { return c.instance.Turn(t) }

// Arrive passes outcomes of inline activities to the code, for its next turn.
func (c *Code) Arrive(outcomes []history.Event) { c.instance.Arrive(outcomes) }

// Wakes reports whether the code would continue if the activities for which settled returns true were settled.
func (c *Code) Wakes(settled func(activityID int64) bool) bool { return c.instance.Wakes(settled) }

func (c *Code) close() {
	if c.instance != nil {
		c.instance.Close()
		c.instance = nil
	}
}
