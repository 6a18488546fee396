package provider

import (
	"context"
	"iter"
)

// Retentions deletes instances some days after their end, and past executions some days after theirs (R21).
type Retentions interface {
	// DueInstances yields the ids of instances of which something is due to be deleted, the longest due first, from an
	// index that may be a second behind: some may already have been dealt with. It ends with the first error; each call
	// goes on where the last one ended.
	DueInstances(ctx context.Context) iter.Seq2[string, error]
	// RetireInstance deletes what is due of an instance: all of it when it is over, and past executions, the oldest
	// first, when it is not. It is repeated until it is done, and goes on where the last call stopped. It does nothing
	// when nothing is due or there is no such instance.
	RetireInstance(ctx context.Context, instanceID string) (Retired, error)
}

// Retired is what a retention has deleted of an instance.
type Retired struct {
	Instance   bool // all of it
	Executions int  // the number of past executions
}
