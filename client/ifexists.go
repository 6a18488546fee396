package client

import (
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/provider"
)

// IDConflictPolicy is the policy of a start whose instance ID is in use.
type IDConflictPolicy string

// Policies of IfExists.
const (
	// UseExisting returns the ID of the existing instance and does not start a new one.
	UseExisting IDConflictPolicy = starting.UseExisting
	// Replace terminates and purges the existing instance and starts the new one.
	Replace IDConflictPolicy = starting.Replace
)

// IfExists sets the policy of a start whose instance ID is in use. It requires WithInstanceID. Without IfExists, Start
// returns ErrAlreadyExists. If the existing instance is being purged, the call waits until the ID is free or ctx ends.
// IfExists is an option of Start, StartOrRaiseEvent and StartOrUpdate.
//
// UseExisting keeps the existing instance, even if it belongs to another orchestration.
//
// Replace terminates an instance that has not ended with the message ReplacedMessage, waits for its end, purges it, and
// starts the new instance. The children of the old instance are not purged, as with Purge. Invalid input is rejected
// before the old instance is changed. Replace requires the permissions of Terminate and Purge.
//
// Replace is not a transaction. Other callers can see the old instance as Terminated and Deleting, and for a moment no
// instance. At that moment they may start another instance with the ID. If the process dies or ctx ends, the new
// instance may not exist. In this case, repeat the call. If two starts replace an instance at the same time, both
// succeed, and the later one replaces the instance of the earlier one.
//
// With WithIdempotencyKey, a repeated call is the same start. It keeps the running or ended instance that the first
// call started. It returns ErrPurged if that instance was replaced or purged. Without a key, a repeated call replaces
// its own instance.
func IfExists(policy IDConflictPolicy) StartOption {
	return func(o *startOptions) { o.IfExists = (*string)(&policy) }
}

// AlreadyExistsError describes the instance that uses the ID of a start: its orchestration, status and start time.
type AlreadyExistsError = provider.AlreadyExistsError

// ReplacedMessage is the message with which Replace terminates an instance.
const ReplacedMessage = starting.ReplacedMessage
