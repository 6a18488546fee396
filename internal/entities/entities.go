// Package entities stores the state of an entity while its orchestration runs, and builds the names of entities.
package entities

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/replay"
)

// Mark is the prefix of the name of an entity's orchestration. It also separates the entity's name and key in its
// instance ID.
const Mark = "@"

// HasKey reports whether a name is invalid for an entity because it contains Mark.
func HasKey(entity string) bool { return strings.Contains(entity, Mark) }

// MustName panics if an entity cannot have the name.
func MustName(name string) {
	names.Must("entity", name)
	if HasKey(name) {
		panic(fmt.Sprintf("perdure: entity %q: name contains %q", name, Mark))
	}
}

const (
	// An entity continues as new after this many operations, or after this many bytes of inputs, outputs and states. A
	// query replays all of them.
	maxOperations = 1000
	maxBytes      = 4 << 20
	// With more parked inputs, an entity does not continue as new, because one commit would contain all of them.
	maxParked = 500
)

// errEnding rejects operations of a cancelled entity, which would otherwise never end under load.
var errEnding = errors.New("entity is cancelled and accepts no more operations")

// Execution is the state of an entity in one execution of its orchestration.
type Execution struct {
	state      json.RawMessage // nil if there is none
	operations int
	bytes      int          // of the operations, in the history
	full       *replay.Task // settles when the history is long enough
	rejection  error
}

// Start returns the Execution of an orchestration that starts with a state.
func Start(c *replay.Context, state json.RawMessage) *Execution {
	e := &Execution{full: c.NewSignal()}
	e.setState(state)
	return e
}

// State returns the state as JSON, or nil if there is none.
func (e *Execution) State() json.RawMessage { return e.state }

// setState sets or, with nil or null, deletes the state.
func (e *Execution) setState(doc json.RawMessage) {
	e.state = nil
	if len(doc) > 0 && string(doc) != "null" {
		e.state = doc
	}
}

// endOperation counts an operation and its bytes. After enough operations the history is full, but not before most of
// the operations that were parked during a pause are processed.
func (e *Execution) endOperation(c *replay.Context, bytes int) {
	e.operations++
	e.bytes += bytes
	if (e.operations >= maxOperations || e.bytes >= maxBytes) && c.ParkedBehind() <= maxParked {
		c.Signal(e.full)
	}
}

// AwaitFull waits until the history is long enough to continue as new. If the scope is cancelled before, AwaitFull
// returns the cancellation, and Rejection returns an error from then on.
func (e *Execution) AwaitFull(c *replay.Context) *replay.Cancellation {
	cancelled := c.Await(e.full)
	if cancelled != nil {
		e.rejection = errEnding
	}
	return cancelled
}

// Rejection returns the error of new operations, or nil if the entity accepts them.
func (e *Execution) Rejection() error { return e.rejection }

// Parse returns the entity and the key of an instance ID. ok is false for other instances.
func Parse(instanceID string) (entity, key string, ok bool) {
	rest, marked := strings.CutPrefix(instanceID, Mark)
	entity, key, ok = strings.Cut(rest, Mark)
	return entity, key, marked && ok && entity != "" && key != ""
}
