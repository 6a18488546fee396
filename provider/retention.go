package provider

import (
	"context"
	"iter"
)

// Retentions is for the sweeper: it deletes instances and past executions when their retention has passed (R21). It is
// optional (NoRetentions): a provider without it ignores Turn.Retention, and instances stay until they are deleted.
type Retentions interface {
	// DueInstances yields the IDs of instances with due deletions, the longest due first, from an index that can be a
	// second behind. Some may have been processed already. It ends with the first error. Each call continues where the
	// last one ended.
	DueInstances(ctx context.Context) iter.Seq2[string, error]
	// ApplyRetention makes the due deletions of an instance: it deletes the whole instance if it has ended, or
	// otherwise its oldest past executions. Repeat the call until it succeeds. It continues where the last call
	// stopped. It does nothing if no deletion is due or the instance does not exist.
	ApplyRetention(ctx context.Context, instanceID string) (RetentionResult, error)
}

// RetentionResult is the result of ApplyRetention.
type RetentionResult struct {
	// Instance is true if the whole instance was deleted.
	Instance bool
	// Executions is the number of deleted past executions.
	Executions int
}
