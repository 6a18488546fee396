package replay

import (
	"time"

	"github.com/perdure/perdure/history"
)

// Turn contains the arguments of a turn.
type Turn struct {
	// Now becomes the time of the orchestration. It is raised to the time of the last turn, and to the due time of each
	// timer that fires.
	Now time.Time
	// Version and BuildID are recorded in TurnStarted.
	Version, BuildID string
	// Inputs contains the input events of each message, in order. The turn assigns their ID and Time.
	Inputs [][]history.Event
	// MostParked limits the arrived outcomes and parked inputs that the turn takes. If there are any of these, a
	// limited turn takes no Inputs, and records in TurnStarted how many it took. The next turn takes the rest. 0 means
	// no limit: the turn takes all of these and then Inputs, unless the documents of the parked inputs are too large
	// for one turn.
	MostParked int
	// Commits makes the turn commit TurnStarted even if no input applies.
	Commits bool
	// Buffer is the memory for Outcome.Events. The turn overwrites it as far as the events fit. After the turn, the
	// instance has no reference to Buffer or Inputs. After an error, the caller must not reuse Buffer or Inputs,
	// because abandoned code may still use them. If Buffer is nil, the turn allocates memory.
	Buffer []history.Event
}

// Outcome is the result of a turn.
type Outcome struct {
	// Events are the events to commit: TurnStarted, then each applied input followed by the decisions that it caused.
	// If no input applied there are none, unless Turn.Commits is set.
	Events []history.Event
	// Consumed is the number of consumed messages: all of them, unless one ended the execution (R2).
	Consumed int
	// Ended is set if the execution has ended. The last event is its end.
	Ended bool
	// Continued is not nil if the last event is OrchestrationContinuedAsNew. The caller names the next execution in
	// that event and starts it with the Continuation.
	Continued *Continuation
	// Repeated contains the names of redelivered updates that have ended, by their IDs. It omits updates that ended in
	// this turn.
	Repeated map[string]string
	// Callers contains the orchestrations that sent updates in Repeated, by the IDs of the updates.
	Callers map[string][]history.Parent
	// RejectedCallers contains the orchestrations that cannot wait for a running update, because too many already wait
	// for it.
	RejectedCallers []history.Parent
	// Waits contains the waits for external events that ended, in order, if Options.WaitEnds is set.
	Waits []WaitEnd
}
