package kit

import (
	"time"

	"github.com/perdure/perdure/provider"
)

// Config describes a hub. Every hub has the work queues Queue and OtherQueue, a history.ExclusiveQueue for Queue, and a
// dead-letter queue for each queue.
type Config struct {
	// Visibility is the visibility timeout of all queues.
	Visibility time.Duration
}

// The work queues that every hub of a Harness has.
const (
	Queue      = "default"
	OtherQueue = "payments"
)

// Hub is a task hub with hooks for tests. All fields without a Capability are required. The hooks are called from the
// test's goroutine.
type Hub struct {
	Provider provider.Provider
	// Receive receives up to 10 visible records of a queue (provider.QueueInbox, provider.QueueTimers or a work queue)
	// and locks them. If no record is visible after a wait in which earlier sends arrive, it returns an empty slice.
	Receive func(queue string) []provider.Record
	// ReceiveDead is like Receive for the dead-letter queue of a queue.
	ReceiveDead func(queue string) []provider.Record
	// PutDeadLetter puts a record into the dead-letter queue of a queue, as if the queue had moved it. It uses only
	// Body, and Group for the inbox and an exclusive queue.
	PutDeadLetter func(queue string, r provider.Record)
	// Now returns the time of the provider's clock.
	Now func() time.Time
	// Advance advances the time by d, so that messages become visible and locks expire.
	Advance func(d time.Duration)

	// Fail makes later calls to the backend fail, and replaces an earlier Fault. Fault{} stops the failures. hits
	// returns the number of failed calls. Fail requires the capability Faults.
	Fail func(f Fault) (hits func() int)
	// Damage damages a committed segment (Corruption).
	Damage func(executionID string, segment int64, d Damage)
	// Lag makes eventually consistent reads and the list index miss the last n written items (StaleReads).
	Lag func(n int)
}

// Capability is a feature that some tests require and some backends do not have.
type Capability string

// The capabilities.
const (
	// Faults requires Hub.Fail.
	Faults Capability = "faults"
	// Corruption requires Hub.Damage.
	Corruption Capability = "corruption"
	// StaleReads requires Hub.Lag.
	StaleReads Capability = "stale reads"
	// VirtualTime means that Hub.Advance returns quickly for any duration.
	VirtualTime Capability = "virtual time"
	// Polling means that the hub's provider implements provider.Poller.
	Polling Capability = "polling"
	// StrictLocks means that the queues reject requests with an expired lock, and limit a lock to 12 hours.
	StrictLocks Capability = "strict locks"
	// LargePayloads means that the hub has a payload store (provider.PayloadStoreProvider).
	LargePayloads Capability = "large payloads"
)

// Operation is a kind of call that a provider makes to its backend.
type Operation string

// The kinds of calls.
const (
	Write  Operation = "write"  // commits a turn, a start or a build
	Update Operation = "update" // changes the status of an instance
	Read   Operation = "read"   // reads an instance, a history, builds or a list
	Send   Operation = "send"   // sends messages
	Delete Operation = "delete" // deletes records
	Delay  Operation = "delay"  // delays records
	// Receive is a call that fetches records.
	Receive Operation = "receive"
)

// Fault selects calls that fail.
type Fault struct {
	Operation Operation
	Failure   Failure
	// Times is the number of calls that fail. 0 means all.
	Times int
	// After is the number of calls that succeed before the first failure.
	After int
}

// Failure is the way in which a call fails.
type Failure string

// The kinds of failures.
const (
	// Throttled means that the call was not executed, and may succeed later.
	Throttled Failure = "throttled"
	// Rejected means that the call was not executed, and cannot succeed later.
	Rejected Failure = "refused"
	// ResponseLost means that the call was executed, but its response was lost.
	ResponseLost Failure = "lost"
	// CountOnly means that the call succeeds and is counted by hits.
	CountOnly Failure = "counted"
)

// Damage is a kind of damage to a segment.
type Damage string

// The kinds of damage.
const (
	Undecodable  Damage = "undecodable"   // the content cannot be decoded
	LaterRelease Damage = "later release" // the segment has an event of an unknown kind
	NoEvents     Damage = "no events"     // the segment has no events
	PartMissing  Damage = "part gone"     // a part other than the first one is missing
	Missing      Damage = "gone"          // the segment is missing
)
