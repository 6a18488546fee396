package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/provider"
)

const (
	// maxAttempts is the number of attempts before an instance is deferred, with delays of one and two seconds.
	maxAttempts = 3
	// maxDeferred limits the instances that are deferred or have failed. A page starts only when all its instances fit
	// within the limit.
	maxDeferred = 1000
	// callTimeout limits the first attempt of an instance, and the read of a page. The timeout doubles with each later
	// attempt, up to maxCallTimeout. A call that hangs therefore releases its slot.
	callTimeout    = 2 * time.Minute
	maxCallTimeout = 16 * time.Minute
	// retryInterval is the interval between retries of deferred instances while pages are left.
	retryInterval = time.Minute
)

// reconciler is one call of Reconcile.
type reconciler struct {
	instances   Backend
	hub         provider.Reconciler
	now         func() time.Time
	sleep       func(ctx context.Context, d time.Duration) error
	options     provider.ReconcileOptions
	concurrency int
	onProgress  func(ReconcileResult)
	budget      *retrybudget.Budget

	// pageCursor is the cursor of the current page, and page is its number in this call. pagesDone is true after the
	// last page.
	pageCursor string
	page       int
	pagesDone  bool

	mu     sync.Mutex
	result ReconcileResult
	// deferred are instances whose calls failed with transient errors. failed are instances whose calls failed
	// permanently. They are counted and not retried.
	deferred, failed []failedInstance
	// named are the unfinished instances that were specified by ID or by the cursor.
	named map[string]bool
}

// failedInstance is an instance whose calls failed. A later attempt or call can reconcile the instance.
type failedInstance struct {
	instanceID string
	pageCursor string // cursor of the page that contains the instance
	page       int
	timeout    time.Duration // timeout of the last attempt
	err        error
}

// errTooManyFailed means that a service rejects all calls, and not only the calls for a few instances.
var errTooManyFailed = fmt.Errorf("more than %d instances failed; continue when the failing service has recovered",
	maxDeferred-reconcilePageSize)

// reconcileByID reconciles instances by their IDs.
func (r *reconciler) reconcileByID(ctx context.Context, ids []string) error {
	r.named = make(map[string]bool, len(ids))
	for _, id := range ids {
		r.named[id] = true
	}
	for page := range slices.Chunk(ids, reconcilePageSize) {
		if err := r.reconcilePage(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// reconcileFrom reconciles all instances from a position. It starts with deletions, because the parent of a child that
// is being deleted receives the child's response when the deletion is complete. A deletion that fails is retried with
// its page.
func (r *reconciler) reconcileFrom(ctx context.Context, p position) error {
	r.pageCursor, r.pagesDone = p.Page, p.PagesDone
	if err := r.reconcileByID(ctx, p.Instances); err != nil || p.PagesDone {
		return err
	}
	if p.Page == "" {
		err := r.eachPage(ctx, provider.StatusDeleting, "", r.completeDeletions)
		if r.pageCursor = ""; err != nil { // the cursor belongs to the list of deletions
			return err
		}
	}

	retriedAt := r.now()
	return r.eachPage(ctx, "", p.Page, func(ctx context.Context, ids []string) error {
		if err := r.reconcilePage(ctx, ids); err != nil {
			return err
		}
		if now := r.now(); now.Sub(retriedAt) >= retryInterval {
			retriedAt = now
			r.retry(ctx, func(in failedInstance) bool { // a call that hangs would delay the next page
				return !errors.Is(in.err, retrybudget.ErrCallTimeout)
			})
		}
		return contextError(ctx)
	})
}

// completeDeletions reconciles instances that are being deleted.
func (r *reconciler) completeDeletions(ctx context.Context, ids []string) error {
	r.concurrently(ctx, len(ids), func(i int) {
		if result, err := r.attempt(ctx, failedInstance{instanceID: ids[i]}, maxAttempts); err == nil {
			r.count(result, nil)
		}
	})
	return contextError(ctx)
}

// eachPage calls do with the instance IDs of each page. If status is empty, it reports the progress after each page.
func (r *reconciler) eachPage(
	ctx context.Context, status provider.RuntimeStatus, cursor string,
	do func(ctx context.Context, ids []string) error,
) error {
	for {
		r.pageCursor = cursor
		r.page++
		page, err := r.readPage(ctx, status, cursor)
		if err != nil {
			return err
		}
		ids := make([]string, len(page.Instances))
		for i := range page.Instances {
			ids[i] = page.Instances[i].InstanceID
		}
		if err := do(ctx, ids); err != nil {
			return err
		}
		cursor, r.pageCursor = page.NextCursor, page.NextCursor
		r.pagesDone = cursor == "" && status == ""
		if r.onProgress != nil && status == "" {
			r.onProgress(r.progress())
		}
		if cursor == "" {
			return nil
		}
	}
}

// readPage reads a page of instances, and retries within the retry budget.
func (r *reconciler) readPage(
	ctx context.Context, status provider.RuntimeStatus, cursor string,
) (page provider.Page, err error) {
	q := provider.ListQuery{Status: status, Limit: reconcilePageSize, Cursor: cursor}
	err = r.budget.Do(ctx, retrybudget.IsTransient, func() error {
		return retrybudget.WithTimeout(ctx, callTimeout, "ListInstances", "", func(ctx context.Context) (err error) {
			page, err = r.instances.ListInstances(ctx, q)
			return err
		})
	})
	return page, err
}

// reconcilePage reconciles the instances of a page. It first retries deferred instances until a page fits within
// maxDeferred.
func (r *reconciler) reconcilePage(ctx context.Context, ids []string) error {
	if free := maxDeferred - reconcilePageSize - len(r.failed); free >= 0 {
		if err := r.retryDeferred(ctx, free); err != nil {
			return err
		}
	}
	if len(r.deferred)+len(r.failed) > maxDeferred-reconcilePageSize {
		return errTooManyFailed
	}
	r.concurrently(ctx, len(ids), func(i int) {
		in := failedInstance{instanceID: ids[i], pageCursor: r.pageCursor, page: r.page}
		r.reconcileInstance(ctx, in, maxAttempts)
	})
	return contextError(ctx)
}

// retryDeferred retries deferred instances until at most n are left, or the retry budget is exhausted.
func (r *reconciler) retryDeferred(ctx context.Context, n int) error {
	for delay := retrybudget.Delays(); len(r.deferred) > n && !r.budget.Exhausted(); {
		if err := r.sleep(ctx, delay()); err != nil {
			return err
		}
		r.retry(ctx, func(failedInstance) bool { return true })
	}
	return contextError(ctx)
}

// retry retries the selected deferred instances once.
func (r *reconciler) retry(ctx context.Context, selected func(failedInstance) bool) {
	before := r.deferred
	var retried, others []failedInstance
	for _, in := range before {
		if selected(in) {
			retried = append(retried, in)
		} else {
			others = append(others, in)
		}
	}
	r.deferred = others
	r.concurrently(ctx, len(retried), func(i int) { r.reconcileInstance(ctx, retried[i], 1) })
	if ctx.Err() != nil {
		r.deferred = before // some of them may be done
	}
}

// concurrently calls do with 0 to n-1, until ctx ends.
func (r *reconciler) concurrently(ctx context.Context, n int, do func(i int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, r.concurrency)
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			do(i)
			<-slots
		})
	}
	running.Wait()
}

// reconcileInstance reconciles an instance, and counts or defers it.
func (r *reconciler) reconcileInstance(ctx context.Context, in failedInstance, attempts int) {
	in.timeout = min(max(callTimeout, 2*in.timeout), maxCallTimeout)
	result, err := r.attempt(ctx, in, attempts)
	if ctx.Err() != nil {
		return // not counted, because the next call processes the instance again
	}
	in.err = err
	transient := retrybudget.IsTransient(err)
	if !transient {
		r.count(result, err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case transient:
		r.deferred = append(r.deferred, in)
	case err != nil && !errors.Is(err, provider.ErrCorrupt): // for example an expired session; another call may succeed
		r.failed = append(r.failed, in)
	default:
		delete(r.named, in.instanceID)
	}
}

// attempt makes up to a number of attempts, with short delays. It does not repeat a call that timed out, because the
// repeated call would occupy a slot for a long time.
func (r *reconciler) attempt(
	ctx context.Context, in failedInstance, attempts int,
) (result provider.ReconcileResult, err error) {
	timeout := cmp.Or(in.timeout, callTimeout)
	for delay := time.Second; ; delay *= 2 {
		reconcile := func(ctx context.Context) (err error) {
			result, err = r.hub.ReconcileInstance(ctx, in.instanceID, r.options)
			return err
		}
		err = retrybudget.WithTimeout(ctx, timeout, "ReconcileInstance", in.instanceID, reconcile)
		if err == nil {
			r.budget.Succeeded()
			return result, nil
		}
		if !retrybudget.IsTransient(err) || ctx.Err() != nil {
			return result, err
		}
		r.budget.Failed(err)
		if attempts--; attempts == 0 || errors.Is(err, retrybudget.ErrCallTimeout) {
			return result, err
		}
		if err := r.sleep(ctx, delay); err != nil {
			return result, err
		}
	}
}

// count counts an instance that is reconciled or has failed.
func (r *reconciler) count(reconciled provider.ReconcileResult, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := &r.result
	total.Instances++
	total.Sent += int64(reconciled.Sent)
	total.RejectedOutputs += int64(len(reconciled.RejectedOutputs))
	total.SkippedOutputs += int64(reconciled.SkippedOutputs)
	total.LostChildren += int64(reconciled.LostChildren)
	if reconciled.Truncated {
		total.TruncatedInstances++
	}
	switch {
	case err != nil:
		total.Failed++
		if len(total.Errors) < maxReconcileErrors {
			total.Errors = append(total.Errors, err.Error())
		}
	case reconciled.NotFound:
		total.NotFound++
	case reconciled.Deleted:
		total.Deleted++
	case reconciled.EndedBeforeSince:
		total.EndedBeforeLookback++
	case reconciled.Ended:
		total.Ended++
	default:
		total.Active++
	}
}

// progress returns the result so far. A call with the Cursor of this result processes all unfinished instances,
// including deferred and failed ones.
func (r *reconciler) progress() ReconcileResult {
	result := r.result
	result.Errors = slices.Clone(result.Errors)
	result.Deferred = int64(len(r.deferred))
	result.Cursor = r.position().String()
	return result
}

// finish returns the final result and the error of the call. If the call stopped early, the error is err. Otherwise
// instances that are still deferred count as failed.
func (r *reconciler) finish(err error) (ReconcileResult, error) {
	remaining := r.remaining()
	if err != nil {
		result := r.progress()
		result.RemainingInstances = remaining
		return result, err
	}
	for i := range r.deferred {
		r.count(provider.ReconcileResult{}, r.deferred[i].err)
	}
	r.deferred = nil
	result := r.progress()
	result.RemainingInstances, result.Cursor = remaining, ""
	if result.Failed > 0 {
		err = fmt.Errorf("%d of %d instances failed, first error: %s", result.Failed, result.Instances,
			result.Errors[0])
	}
	return result, err
}

// remaining returns the IDs of the instances that another call can process, including specified instances that were not
// tried.
func (r *reconciler) remaining() []string {
	ids := slices.Collect(maps.Keys(r.named))
	for _, in := range slices.Concat(r.deferred, r.failed) {
		ids = append(ids, in.instanceID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// contextError returns an error if ctx has ended.
func contextError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("stopped: %w", context.Cause(ctx))
}
