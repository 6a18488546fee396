package providertest

import "github.com/perdure/perdure/provider/providertest/internal/kit"

// These types describe a hub. Package kit, which all tests of the suite import, defines them.
type (
	// Config describes the queues of a hub.
	Config = kit.Config
	// Hub is a task hub with hooks for tests.
	Hub = kit.Hub
	// Capability is a feature of a hub that some tests require and some backends do not have.
	Capability = kit.Capability
	// Operation is a kind of call that a provider makes to its backend.
	Operation = kit.Operation
	// Fault selects calls that fail.
	Fault = kit.Fault
	// Failure is the way in which a call fails.
	Failure = kit.Failure
	// Damage is a kind of damage to a segment.
	Damage = kit.Damage
)

// The work queues that every hub of a Harness has.
const (
	Queue      = kit.Queue
	OtherQueue = kit.OtherQueue
)

// The capabilities.
const (
	Faults        = kit.Faults
	Corruption    = kit.Corruption
	StaleReads    = kit.StaleReads
	VirtualTime   = kit.VirtualTime
	Polling       = kit.Polling
	StrictLocks   = kit.StrictLocks
	LargePayloads = kit.LargePayloads
)

// The kinds of calls.
const (
	Write   = kit.Write
	Update  = kit.Update
	Read    = kit.Read
	Send    = kit.Send
	Delete  = kit.Delete
	Delay   = kit.Delay
	Receive = kit.Receive
)

// The kinds of failures.
const (
	Throttled    = kit.Throttled
	Rejected     = kit.Rejected
	ResponseLost = kit.ResponseLost
	CountOnly    = kit.CountOnly
)

// The kinds of damage.
const (
	Undecodable  = kit.Undecodable
	LaterRelease = kit.LaterRelease
	NoEvents     = kit.NoEvents
	PartMissing  = kit.PartMissing
	Missing      = kit.Missing
)
