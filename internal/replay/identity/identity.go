// Package identity has the IDs of an execution for its code, and the random numbers and IDs that derive from them. They
// are the same in each replay, and in a restart that copies the history (R30).
package identity

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/perdure/perdure/history"
)

// Identity is the identity of an execution for its code. Create it with Of.
type Identity struct {
	self          history.ExecutionRef
	random, uuids stream
}

// Of returns the identity of an execution.
func Of(self history.ExecutionRef) Identity { return Identity{self: self} }

// InstanceID returns the ID of the instance.
func (i *Identity) InstanceID() string { return i.self.InstanceID }

// ExecutionID returns the ID of the execution.
func (i *Identity) ExecutionID() string { return i.self.ExecutionID }

// Become changes the identity to another execution. The change also applies to code that has kept the Rand.
func (i *Identity) Become(self history.ExecutionRef) {
	i.self = self
	i.random.reseed(self.ExecutionID)
	i.uuids.reseed(self.ExecutionID)
}

// Rand returns the source of the random numbers of the code.
func (i *Identity) Rand() *rand.Rand { return i.random.start("rand", i.self.ExecutionID) }

// NewUUID returns a UUID.
func (i *Identity) NewUUID() string { return newUUID(i.uuids.start("uuid", i.self.ExecutionID)) }

// MarkDraws returns a function that undoes all draws since the call. A replay does not call validators, so it does not
// repeat their draws.
func (i *Identity) MarkDraws() (revert func()) {
	i.random.start("rand", i.self.ExecutionID)
	i.uuids.start("uuid", i.self.ExecutionID)
	numbers, ids := *i.random.source, *i.uuids.source
	return func() { *i.random.source, *i.uuids.source = numbers, ids }
}

// ChildID returns the instance ID of a child without an explicit one. past is the recorded event, or nil. A restart
// records another ID for a child that had not ended at the end of the copied history.
func (i *Identity) ChildID(kind history.Kind, eventID int64, past *history.Event) string {
	id := i.self.ChildID(eventID)
	if past != nil && past.InstanceID != id && past.Kind == kind && past.ID == eventID &&
		strings.HasSuffix(past.InstanceID, fmt.Sprintf(":%d", eventID)) {
		return past.InstanceID
	}
	return id
}
