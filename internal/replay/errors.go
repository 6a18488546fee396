package replay

import (
	"fmt"
	"reflect"
	"time"
)

// NondeterminismError is the error when an orchestration's code no longer takes the decisions that its history holds: it was changed in a way
// that running instances do not survive, or it depends on something that is not the same every time (the clock, a random number, the order of a
// map). The instance does not fail: it goes on once the code is mended.
type NondeterminismError struct {
	InstanceID  string
	ExecutionID string
	// EventID is the event of history where the two differ; where history is over, its last one.
	EventID int64
	// Expected is what history holds there, Got what the code asked for.
	Expected, Got string
}

// nondeterminism is the error of the execution that the options are for.
func (o *Options) nondeterminism(eventID int64, expected, got string) *NondeterminismError {
	return &NondeterminismError{InstanceID: o.InstanceID, ExecutionID: o.ExecutionID, EventID: eventID, Expected: expected, Got: got}
}

// As lets errors.As find the error as one of the same fields, which this package cannot import: perdure.NondeterminismError.
func (e *NondeterminismError) As(target any) bool {
	from, to := reflect.ValueOf(e), reflect.ValueOf(target).Elem()
	if to.Kind() != reflect.Pointer || !from.CanConvert(to.Type()) {
		return false
	}
	to.Set(from.Convert(to.Type()))
	return true
}

func (e *NondeterminismError) Error() string {
	return fmt.Sprintf("nondeterminism in instance %q (execution %s) at event #%d: history has %s, the code asked for %s",
		e.InstanceID, e.ExecutionID, e.EventID, e.Expected, e.Got)
}

// UnregisteredError is the error when an orchestration called something that its registry cannot name. The instance waits for code that registers
// it.
type UnregisteredError struct {
	InstanceID string
	// What describes what is missing, and why it could not be found.
	What string
}

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("instance %q: %s", e.InstanceID, e.What)
}

// BlockedOutsideError is the error when an orchestration's code did not return within the limit of a turn: it waits for something other than a
// future (a mutex, a channel, the network), or it runs without end.
type BlockedOutsideError struct {
	InstanceID string
	// Limit is the time that the turn had.
	Limit time.Duration
	// Stack is where the code was at that moment, as the runtime prints it.
	Stack string
}

func (e *BlockedOutsideError) Error() string {
	return fmt.Sprintf("instance %q: the orchestration did not come back within %v: it blocks on something that is not a future, or never ends:\n%s",
		e.InstanceID, e.Limit, e.Stack)
}

// ForeignGoroutineError is the error when an orchestration's context or future was used on a goroutine that is not the orchestration's own. The
// order of such calls is not in history. The goroutine that made the call was ended.
type ForeignGoroutineError struct {
	InstanceID string
	// Stack is where the call was made.
	Stack string
	// Late: the call was made when no turn was under way. The last one may be committed, without what was asked for.
	Late bool
}

func (e *ForeignGoroutineError) Error() string {
	return fmt.Sprintf("instance %q: an orchestration's context or future was used on a goroutine that is not the orchestration's:\n%s",
		e.InstanceID, e.Stack)
}
