package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// ErrReconcileUnsupported means that the client's Backend cannot be reconciled. See provider.Reconciler.
var ErrReconcileUnsupported error = provider.UnsupportedError{Capability: provider.CapabilityReconcile}

// ReconcileOptions holds the options of Reconcile.
type ReconcileOptions struct {
	// Lookback is the maximum age of detached starts that are sent again, at most 28 days. 0 means 14 days. After a
	// restore, use 14 days, which is the retention of the queues, plus the age of the restored data. Older starts are
	// skipped, because their instances may have been purged and would run again. Instances that have not ended always
	// send their detached starts of the last 28 days.
	Lookback time.Duration
	// Concurrency is the number of instances that are processed concurrently, at most 256. 0 means 32.
	Concurrency int
	// Cursor continues an earlier call (see ReconcileResult). If it is empty, the call starts at the beginning.
	Cursor string
	// Instances restricts the call to these instances, such as the RemainingInstances of another call. It cannot be
	// combined with Cursor.
	Instances []string
	// OnProgress, if not nil, is called after each page of instances, from one goroutine.
	OnProgress func(ReconcileResult)
	// OnStall, if not nil, is called about once a minute while no call succeeds. Calls do not overlap.
	OnStall func(Stall)
}

// ReconcileResult is the progress or the result of Reconcile.
type ReconcileResult struct {
	// Instances counts the instances that were processed. The following fields divide them. Active have not ended.
	// Ended have ended within the Lookback, and EndedBeforeLookback have ended earlier. Deleted were being deleted, and
	// Reconcile completed the deletion. NotFound do not exist anymore. Failed could not be processed.
	Instances           int64 `json:"instances"`
	Active              int64 `json:"living"`
	Ended               int64 `json:"over"`
	EndedBeforeLookback int64 `json:"old"`
	Deleted             int64 `json:"deleted"`
	NotFound            int64 `json:"gone"`
	Failed              int64 `json:"failed"`
	// Deferred counts the instances that failed and will be retried, at most 1,000 at a time.
	Deferred int64 `json:"setAside"`
	// Sent counts messages, work items and timers that were sent. RejectedOutputs counts outputs that no queue of the
	// hub accepts. Such outputs fail.
	Sent            int64 `json:"sent"`
	RejectedOutputs int64 `json:"refused"`
	// SkippedOutputs counts the detached starts and events for other instances that were skipped because of their age.
	// The limit is Lookback, or 28 days if their instance has not ended. TruncatedInstances counts instances whose
	// earlier executions were skipped (provider.MaxPastExecutions).
	SkippedOutputs     int64 `json:"leftOut"`
	TruncatedInstances int64 `json:"cut"`
	// LostChildren counts children that do not exist and were started more than 28 days ago. Their outcome is unknown.
	// Their parents receive a failure of type history.TypeOutcomeLost.
	LostChildren int64 `json:"lost"`
	// Errors are the first errors of the failed instances.
	Errors []string `json:"errors,omitempty"`
	// RemainingInstances holds the instances that another call can process. These are the instances that failed and,
	// with ReconcileOptions.Instances, the instances that were not tried. An instance whose history is corrupt is only
	// in Errors.
	RemainingInstances []string `json:"left,omitempty"`
	// Cursor continues this reconcile in another call. It is empty when the reconcile is complete, and until the first
	// page is complete. It contains the IDs of up to 20 failed instances of earlier pages. If more instances failed, it
	// points to the first page with one of them.
	Cursor string `json:"cursor,omitempty"`
}

const (
	defaultLookback    = 14 * 24 * time.Hour
	defaultConcurrency = 32
	maxConcurrency     = 256
	reconcilePageSize  = 500
	maxReconcileErrors = 20
	// runFormat is a time format whose strings sort by time.
	runFormat = "2006-01-02T15:04:05.000000000Z07:00"
)

// Reconcile sends all outstanding work and outputs of a hub's instances again. Use it after you restore the table to an
// earlier time, or when queues are new or have lost messages. If existing queues have lost messages, wait for
// provider.QueuePurgeCooldown first, because SQS drops a message if it received the same message within the last five
// minutes.
//
// Work whose result is in the history does not run again. Other work may run twice. Events and starts that are not in
// the table are not restored. Reconcile is safe while the hub is running, and can be repeated. After a crash, continue
// with the Cursor or start again.
//
// Instances whose calls are throttled or take longer than two minutes are retried later. Reconcile stops retrying when
// no call has succeeded for an hour. The instances that then still fail count as Failed and are in RemainingInstances.
// The same applies to instances that fail permanently, for example because the caller's session has expired. Reconcile
// stops if more than 500 instances fail at a time.
//
// Reconcile returns a *provider.FieldError for invalid input.
func (c *Client) Reconcile(ctx context.Context, o ReconcileOptions) (ReconcileResult, error) {
	if err := c.requireProvider("Reconcile"); err != nil {
		return ReconcileResult{}, err
	}
	hub, ok := unwrap.As[provider.Reconciler](c.hub)
	if !ok {
		return ReconcileResult{}, fmt.Errorf("admin: reconcile: %w", ErrReconcileUnsupported)
	}
	from, err := o.complete()
	if err != nil {
		return ReconcileResult{}, fmt.Errorf("admin: reconcile: %w", err)
	}
	r := &reconciler{
		instances: c.hub, hub: hub, now: c.now, sleep: c.sleep,
		options: provider.ReconcileOptions{
			Since: c.now().Add(-o.Lookback), Run: c.now().UTC().Format(runFormat),
		},
		concurrency: o.Concurrency, onProgress: o.OnProgress, budget: c.retryBudget(o.OnStall),
	}

	if len(o.Instances) > 0 {
		err = r.reconcileByID(ctx, o.Instances)
	} else {
		err = r.reconcileFrom(ctx, from)
	}
	if err == nil {
		err = r.retryDeferred(ctx, 0)
	}
	result, err := r.finish(err)
	if err != nil {
		return result, fmt.Errorf("admin: reconcile: %w", err)
	}
	return result, nil
}

// complete checks the options, sets defaults and returns the position at which to start.
func (o *ReconcileOptions) complete() (from position, err error) {
	if o.Lookback == 0 {
		o.Lookback = defaultLookback
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	switch {
	case o.Lookback < 0 || o.Lookback > provider.MaxReconcileLookback:
		return from, &provider.FieldError{
			Field:   "lookback",
			Problem: fmt.Sprintf("must be 0 to %d days", provider.MaxReconcileLookback/(24*time.Hour)),
		}
	case o.Concurrency < 1 || o.Concurrency > maxConcurrency:
		return from, &provider.FieldError{
			Field: "concurrency", Problem: fmt.Sprintf("must be 1 to %d", maxConcurrency),
		}
	}
	if len(o.Instances) > 0 && o.Cursor != "" {
		return from, &provider.FieldError{
			Field: inputcheck.FieldCursor, Problem: "cannot be combined with instances",
		}
	}
	if err := inputcheck.Cursor(o.Cursor); err != nil {
		return from, err
	}
	return parsePosition(o.Cursor)
}
