package replay

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/replay/coroutine"
)

// Info contains the data that an orchestration's code can read about its execution.
type Info struct{ x *execution }

// InstanceID returns the ID of the instance. While a restarted instance repeats the history of an earlier instance, it
// is the ID of that instance.
func (i Info) InstanceID() string { return i.x.identity.InstanceID() }

// ExecutionID returns the ID of the execution. For a restarted instance, the same rule applies as for InstanceID.
func (i Info) ExecutionID() string { return i.x.identity.ExecutionID() }

// Now returns the time of the turn, in UTC.
func (i Info) Now() time.Time { return i.x.journal.Draft.Now() }

// TakesLargePayloads reports whether payloads of this turn may be as large as a payload store allows.
func (i Info) TakesLargePayloads() bool { return i.x.journal.Draft.LargePayloads() }

// IsReplaying reports whether the code is replaying committed events. It is also true while the code is unwound.
func (i Info) IsReplaying() bool {
	return i.x.journal.Cursor.Replaying() || !i.x.scheduler.Gate().Is(coroutine.Live)
}

// IsUnwinding reports whether the code is being dropped from memory. Its deferred calls run, but make no decisions.
func (i Info) IsUnwinding() bool {
	mode := i.x.scheduler.Gate().Mode()
	return mode != coroutine.Live && mode != coroutine.Replaying && mode != coroutine.Querying
}

// IsInstanceCancelled reports whether a cancellation of the instance was requested, in any scope.
func (i Info) IsInstanceCancelled() bool { return i.x.scopes.Root().Cancellation() != nil }

// Logger returns the logger of the orchestration. It logs nothing while IsReplaying returns true.
func (i Info) Logger() *slog.Logger {
	if i.x.logger == nil {
		i.x.logger = newLogger(&i.x.options, i.x.orchestration.Name, &i.x.journal.Cursor, i.x.scheduler.Gate())
	}
	return i.x.logger
}

// Rand returns a source of random numbers that are the same in each replay of an execution.
func (i Info) Rand() *rand.Rand { return i.x.identity.Rand() }

// NewUUID returns a UUID that is the same in each replay of an execution.
func (i Info) NewUUID() string { return i.x.identity.NewUUID() }

// ParkedBehind returns the number of parked inputs that the running turn has left to later turns. It is the same in
// each replay.
func (i Info) ParkedBehind() int {
	i.x.scheduler.Enter()
	return i.x.parked.count()
}
