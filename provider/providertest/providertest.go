// Package providertest is the conformance suite that every provider.Provider must pass, one file a guarantee.
//
// A provider's test calls Run with a Harness that makes hubs of its backend. A test that needs what a backend cannot do
// (lose a response, damage an item) is not skipped silently: the harness declares its Capabilities, and lists in Want
// which tests they exclude and how many are left. Both change only with the suite or the backend, on purpose.
package providertest

import (
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

// Harness makes hubs of one backend.
type Harness struct {
	// Capabilities are those of the hubs that Open makes. A hook of Hub that belongs to one must be set if it is declared.
	Capabilities []Capability
	// Want is what is expected to run. Run fails on any difference.
	Want Report
	// Open makes an empty hub and calls test with it, once, before it returns. It may do so in a testing/synctest bubble.
	// It is called from many tests at once; no hub may see what is done to another.
	Open func(t *testing.T, c Config, test func(t *testing.T, h Hub))
}

// Config describes a hub. Every hub has the work queues Queue and OtherQueue, a history.ExclusiveQueue beside Queue alone, and a dead-letter queue for each queue.
type Config struct {
	// Visibility is how long a record that was received stays locked, in all queues.
	Visibility time.Duration
}

// The work queues that every hub of a Harness has.
const (
	Queue      = "default"
	OtherQueue = "payments"
)

// Hub is a task hub and what tests do to it beside calling the provider. All fields without a Capability are required.
// Functions are called from the test's goroutine.
type Hub struct {
	Provider provider.Provider
	// Receive takes up to 10 visible records of a queue (provider.QueueInbox, provider.QueueTimers, a work queue) and locks
	// them. It returns none when none is visible, after a wait that is long enough for what was sent before to arrive.
	Receive func(queue string) []provider.Record
	// ReceiveDead is Receive for the dead letters of a queue.
	ReceiveDead func(queue string) []provider.Record
	// Bury puts a record into the dead letters of a queue, as it lies there when the queue itself has moved it. Of the record only Body
	// and, for the inbox and an exclusive queue, Group count.
	Bury func(queue string, r provider.Record)
	// Now is the clock that the provider goes by.
	Now func() time.Time
	// Pass lets time pass, in which messages become visible and locks expire.
	Pass func(d time.Duration)

	// Fail makes calls to the backend fail from now on, instead of by an earlier Fail; Fault{} ends it (Faults). hits
	// returns how many have.
	Fail func(f Fault) (hits func() int)
	// Damage spoils a committed segment (Corruption).
	Damage func(executionID string, segment int64, d Damage)
	// Lag makes eventually consistent reads, and the index that lists are read from, miss the last n items written (StaleReads).
	Lag func(n int)
}

// Capability is what tests may need and a backend may not have.
type Capability string

// The capabilities.
const (
	// Faults: Hub.Fail.
	Faults Capability = "faults"
	// Corruption: Hub.Damage.
	Corruption Capability = "corruption"
	// StaleReads: Hub.Lag.
	StaleReads Capability = "stale reads"
	// LongTime: Hub.Pass takes no longer than a moment, whatever passes.
	LongTime Capability = "long time"
	// Polling: the hub's provider is a provider.Polling.
	Polling Capability = "polling"
	// StrictLocks: the queues themselves refuse what is asked with a lock that is over, and hold a lock for 12 hours at most.
	StrictLocks Capability = "strict locks"
	// LargePayloads: the hub has a store of large payloads, provider.PayloadKeeper.
	LargePayloads Capability = "large payloads"
)

// Operation is a kind of call that a provider makes to its backend.
type Operation string

// The kinds of calls.
const (
	Write  Operation = "write"  // that commits a turn, a start or a build
	Update Operation = "update" // of an instance's status
	Read   Operation = "read"   // of an instance, a history, builds or a list
	Send   Operation = "send"   // of messages
	Delete Operation = "delete" // of records
	Delay  Operation = "delay"  // that makes records visible at another time
	// Receive is a call that fetches records.
	Receive Operation = "receive"
)

// Fault describes which calls fail, and how.
type Fault struct {
	On    Operation
	How   Failure
	Times int // the first so many calls; 0: all of them
	After int // not counting so many calls that are let through before
}

// Failure is how a call fails.
type Failure string

// The ways in which calls fail.
const (
	// Throttled: it was not done; the same call may succeed later.
	Throttled Failure = "throttled"
	// Refused: it was not done and never will be.
	Refused Failure = "refused"
	// Lost: it was done, but the answer did not arrive.
	Lost Failure = "lost"
	// Counted: it does not fail, and hits counts it.
	Counted Failure = "counted"
)

// Damage is what has happened to a segment.
type Damage string

// The kinds of damage.
const (
	Undecodable  Damage = "undecodable"   // its content is not what any release wrote
	LaterRelease Damage = "later release" // it has an event of a kind that this release does not know
	NoEvents     Damage = "no events"     // it decodes, and is empty
	PartGone     Damage = "part gone"     // of several parts, one that is not the first is gone
	Gone         Damage = "gone"          // it is gone altogether
)
