package provider

import "context"

// StartPreparer is a provider whose starts can be part of a transaction of the caller's own.
type StartPreparer interface {
	// PrepareStart returns what a transaction is to write for a start. It creates nothing; only the timer of a delayed start is sent, which has no
	// effect without the instance. It returns ErrAlreadyStarted, ErrAlreadyExists and ErrUnknownOrchestration as StartOrchestration would refuse the
	// start.
	PrepareStart(ctx context.Context, s Start) (PreparedStart, error)
}

// PreparedStart is a start that a transaction of the caller's own makes, together with the caller's data: both or neither. What is to be written
// depends on the provider: see dynamo.Writes. It may be used by one goroutine at a time, and be committed once.
type PreparedStart interface {
	// InstanceID is that of the instance that the transaction creates.
	InstanceID() string
	// Begin has the instance begin at once, after the transaction was committed. Where it is not called, or fails, the watch has the instance begin
	// some minutes after the start was prepared. Called twice, or where there is no instance, it has no effect.
	Begin(ctx context.Context) error
	// Refusal returns why the start refused the transaction, whose error err is: ErrAlreadyStarted where the same idempotency key has started it
	// before, ErrAlreadyExists where another start has the id, ErrConflict where the id was purged meanwhile and the start is to be prepared anew. It is
	// nil where err is of something else, such as a condition of the caller's own.
	Refusal(err error) error
}
