package replay

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// Info is what an orchestration's code may know of its execution.
type Info struct{ x *execution }

// InstanceID is the instance's id. While a restarted instance repeats what another was told, it is that one's.
func (i Info) InstanceID() string { return i.x.identity.self.InstanceID }

// ExecutionID is the execution's id, as InstanceID.
func (i Info) ExecutionID() string { return i.x.identity.self.ExecutionID }

// Now is the time of the turn, in UTC.
func (i Info) Now() time.Time { return i.x.journal.draft.now }

// TakesLargePayloads reports whether what the code decides in this turn may be as large as a store of large payloads takes.
func (i Info) TakesLargePayloads() bool { return i.x.journal.draft.large }

// IsReplaying reports whether the code is only brought back to where it was. It is true as well while the code is unwound.
func (i Info) IsReplaying() bool {
	return i.x.journal.cursor.replaying || !i.x.scheduler.gate.is(live)
}

// IsUnwinding reports whether the code is being dropped from memory: its deferred calls run, and nothing that they ask for is decided.
func (i Info) IsUnwinding() bool {
	mode := i.x.scheduler.gate.state()
	return mode != live && mode != replaying && mode != asking
}

// IsInstanceCancelled reports whether the instance's cancel was requested, whatever the scope.
func (i Info) IsInstanceCancelled() bool { return i.x.scopes.root.cancelled != nil }

// Logger returns the orchestration's logger, which is silent while IsReplaying.
func (i Info) Logger() *slog.Logger {
	if i.x.logger == nil {
		i.x.logger = newLogger(i.x)
	}
	return i.x.logger
}

// Rand returns a source of numbers that are the same in each replay of an execution.
func (i Info) Rand() *rand.Rand { return i.x.identity.numbers() }

// NewUUID returns ids that are the same in each replay of an execution.
func (i Info) NewUUID() string { return newUUID(i.x.identity.ids()) }
