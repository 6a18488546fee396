package provider

import "context"

// StartPreparer is an optional interface of a Provider whose starts can be part of a caller's transaction.
type StartPreparer interface {
	// PrepareStart returns the writes of a start for the caller's transaction. It only creates the timer of a delayed
	// start, which has no effect without the instance. It returns ErrAlreadyStarted, ErrAlreadyExists and
	// ErrUnknownOrchestration under the same conditions as StartOrchestration.
	PrepareStart(ctx context.Context, s Start) (PreparedStart, error)
}

// PreparedStart is a start that a caller's transaction commits together with other data. The writes depend on the
// provider (see dynamo.TransactItems). A PreparedStart is not safe for concurrent use and can be committed once.
type PreparedStart interface {
	// InstanceID returns the ID of the instance that the transaction creates.
	InstanceID() string
	// Wake wakes the instance after the transaction was committed. If Wake is not called or fails, the sweeper wakes
	// the instance some minutes after the start was prepared. A call has no effect if Wake was called before, or if the
	// instance does not exist.
	Wake(ctx context.Context) error
	// StartError returns the error of the start if the start caused the failure err of the transaction. The error is
	// ErrAlreadyStarted, ErrAlreadyExists, or ErrConflict if the ID was purged in the meantime and the start must be
	// prepared again. StartError returns nil if err has another cause, such as a condition of the caller.
	StartError(err error) error
}
