package provider

import (
	"context"
	"iter"
)

// Retentions deletes instances and past executions when their retention has passed (R21). The sweeper uses it. It is
// optional (NoRetentions). A provider without it ignores Turn.Retention, and instances are kept until they are deleted.
type Retentions interface {
	// DueInstances yields the IDs of instances with due deletions, the longest due first, from an index that can be a
	// second behind. Some of them may already have been processed. The iterator ends with the first error. Each call
	// continues after the end of the last call.
	DueInstances(ctx context.Context) iter.Seq2[string, error]
	// ApplyRetention makes the due deletions of an instance. It deletes the whole instance if the instance has ended,
	// and otherwise its oldest past executions. Repeat the call until it succeeds. Each call continues the deletion.
	// ApplyRetention does nothing if no deletion is due or the instance does not exist.
	ApplyRetention(ctx context.Context, instanceID string) (RetentionResult, error)
}

// RetentionResult is the result of ApplyRetention.
type RetentionResult struct {
	// Instance is true if the whole instance was deleted.
	Instance bool
	// Executions is the number of deleted past executions.
	Executions int
}
