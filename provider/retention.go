package provider

import (
	"context"
	"iter"
)

// Retentions is what deletes instances some days after their end, and past executions some days after theirs (R21).
type Retentions interface {
	// DueInstances goes through the ids of instances of which something is due to be deleted, what is due for longest first, from an
	// index that may be a second behind: some may have been dealt with. It ends with the first error; calls go on where others ended.
	DueInstances(ctx context.Context) iter.Seq2[string, error]
	// RetireInstance deletes what is due of an instance: all of it when it is over, and past executions when it is not, the oldest
	// first. It is repeated until it is done, and goes on where the last call stopped. Nothing due, or no such instance: nothing.
	RetireInstance(ctx context.Context, instanceID string) (Retired, error)
}

// Retired is what a retention has deleted of an instance.
type Retired struct {
	Instance   bool // all of it
	Executions int  // so many past executions
}
