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
	// Lookback is how far back, counted from now, detached starts are sent again: 14 days if 0, at most 28 days. After
	// a restore, use 14 days, the time that a queue keeps a message, plus the age of the restored second. Older starts
	// are skipped, because their instances may have been purged and would run again. Instances that have not ended send
	// all their detached starts of the last 28 days.
	Lookback time.Duration
	// Concurrency is the number of instances that are processed concurrently: 32 if 0, at most 256.
	Concurrency int
	// Cursor continues an earlier call (see ReconcileResult). Empty starts at the beginning.
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
	// Instances counts the instances that were processed. Active of them have not ended. Ended have ended,
	// EndedBeforeLookback of them earlier than the Lookback. Deleted were being deleted, and their deletion was
	// completed. NotFound no longer exist. Failed have failed.
	Instances           int64 `json:"instances"`
	Active              int64 `json:"living"`
	Ended               int64 `json:"over"`
	EndedBeforeLookback int64 `json:"old"`
	Deleted             int64 `json:"deleted"`
	NotFound            int64 `json:"gone"`
	Failed              int64 `json:"failed"`
	// Deferred counts the instances that failed for now and will be retried, at most 1,000 at a time.
	Deferred int64 `json:"setAside"`
	// Sent counts messages, work items and timers that were sent. RejectedOutputs counts outputs that no queue of the
	// hub accepts. Such outputs fail.
	Sent            int64 `json:"sent"`
	RejectedOutputs int64 `json:"refused"`
	// SkippedOutputs counts detached starts and events for other instances that were skipped because they are older
	// than Lookback, or older than 28 days if their instance has not ended. TruncatedInstances counts instances whose
	// earlier executions were skipped (provider.MaxPastExecutions).
	SkippedOutputs     int64 `json:"leftOut"`
	TruncatedInstances int64 `json:"cut"`
	// LostChildren counts children that do not exist and were started more than 28 days ago. It is unknown whether they
	// have run. Their parents receive a failure of type history.TypeOutcomeLost.
	LostChildren int64 `json:"lost"`
	// Errors are the first errors of the failed instances.
	Errors []string `json:"errors,omitempty"`
	// RemainingInstances holds the instances that another call can process: those that failed and, with
	// ReconcileOptions.Instances, those that were not tried. An instance whose history is corrupt is in Errors only.
	RemainingInstances []string `json:"left,omitempty"`
	// Cursor continues this reconcile in another call. It is empty when the reconcile is complete, and until the first
	// page is complete. It names up to 20 failed instances of earlier pages. If there are more, it points to the first
	// page that has one of them.
	Cursor string `json:"cursor,omitempty"`
}

const (
	defaultLookback    = 14 * 24 * time.Hour
	defaultConcurrency = 32
	maxConcurrency     = 256
	reconcilePageSize  = 500
	maxReconcileErrors = 20
	// runFormat makes times sort as texts.
	runFormat = "2006-01-02T15:04:05.000000000Z07:00"
)

// Reconcile sends again everything that the instances of a hub wait for and have caused. Use it after you restore the
// table to an earlier time, or when queues are new or have lost messages. If existing queues have lost messages, wait
// for provider.QueuePurgeCooldown first, because SQS drops messages that it has received within five minutes.
//
// Work whose result is in the history does not run again. Other work may run twice. Events and starts that are not in
// the table are not restored. Reconcile is safe while the hub is running, and can be repeated. After a crash, continue
// with the Cursor or start again.
//
// Instances whose calls are throttled or take longer than two minutes are retried later. Reconcile waits for calls
// until none has succeeded for an hour. Instances that fail until then, or that fail permanently, such as after the
// caller's session has expired, count as Failed and are in RemainingInstances. Reconcile stops if more than 500
// instances fail at a time.
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
