package client

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

// reconciler is one call of Reconcile.
type reconciler struct {
	client   *Client
	hub      provider.Reconciler
	how      provider.ReconcileOptions
	atOnce   int
	progress func(ReconcileResult)
	budget   *retrybudget.Budget
	// from is the cursor of the page that is worked on, the page'th of this call; over: all pages are done.
	from string
	page int
	over bool

	mu    sync.Mutex
	so    ReconcileResult
	aside []setAside
	// refused are those whose calls failed in a way that does not pass by itself: they are counted as failed, and are not tried again.
	refused []setAside
	// named are those that were asked for by name, or that the cursor has named, until they are done.
	named map[string]bool
}

// setAside is an instance whose calls failed and may yet succeed: by themselves, or once the caller may do again what is refused.
type setAside struct {
	instanceID string
	// from is the cursor of its page, the page'th.
	from string
	page int
	// within is how long its next try may take.
	within time.Duration
	err    error
}

// errTooMany means that a service refuses what is asked of it, rather than that a few instances are in the way.
var errTooMany = fmt.Errorf("more than %d instances failed; continue when the failing service has recovered",
	mostAside-reconcilePage)

// these reconciles instances by their ids.
func (w *reconciler) these(ctx context.Context, ids []string) error {
	w.named = make(map[string]bool, len(ids))
	for _, id := range ids {
		w.named[id] = true
	}
	for some := range slices.Chunk(ids, reconcilePage) {
		if err := w.work(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// allFrom reconciles all instances from a place on. Deletions come first: a parent whose child is being deleted has its answer
// when the deletion is done. One that fails is met again among all.
func (w *reconciler) allFrom(ctx context.Context, p place) error {
	w.from, w.over = p.At, p.Over
	if err := w.these(ctx, p.Also); err != nil || p.Over {
		return err
	}
	if p.At == "" {
		err := w.pages(ctx, ListQuery{Status: StatusDeleting}, "", func(ids []string) error {
			w.sideBySide(ctx, len(ids), func(i int) {
				if did, err := w.try(ctx, setAside{instanceID: ids[i]}, reconcileTries); err == nil {
					w.count(did, nil)
				}
			})
			return ended(ctx)
		})
		if w.from = ""; err != nil { // the cursor was one of the list of deletions
			return err
		}
	}

	retried := w.client.now()
	return w.pages(ctx, ListQuery{}, p.At, func(ids []string) error {
		if err := w.work(ctx, ids); err != nil {
			return err
		}
		if now := w.client.now(); now.Sub(retried) >= betweenAside {
			retried = now
			w.again(ctx, func(in setAside) bool { return !errors.Is(in.err, errTooLong) }) // those hold up what comes behind
		}
		return ended(ctx)
	})
}

// pages calls do with the instances of each page, and reports the progress after each but those of deletions.
func (w *reconciler) pages(ctx context.Context, q ListQuery, cursor string, do func(ids []string) error) error {
	for p := (Paging{Limit: reconcilePage, Cursor: cursor}); ; {
		w.from = p.Cursor
		w.page++
		page, err := w.read(ctx, q, p)
		if err != nil {
			return err
		}
		ids := make([]string, len(page.Items))
		for i := range page.Items {
			ids[i] = page.Items[i].InstanceID
		}
		if err := do(ids); err != nil {
			return err
		}
		p.Cursor, w.from = page.NextCursor, page.NextCursor
		w.over = p.Cursor == "" && q.Status == ""
		if w.progress != nil && q.Status == "" {
			w.progress(w.stand())
		}
		if p.Cursor == "" {
			return nil
		}
	}
}

// read reads a page of instances, for as long as that may yet succeed.
func (w *reconciler) read(ctx context.Context, q ListQuery, p Paging) (page Page[Status], err error) {
	err = w.budget.Do(ctx, mayYetSucceed, func() error {
		return within(ctx, tryTime, "ListInstances", "", func(ctx context.Context) (err error) {
			page, err = w.client.ListPage(ctx, q, p)
			return err
		})
	})
	return page, err
}

// work reconciles some instances, at most a page of them.
func (w *reconciler) work(ctx context.Context, ids []string) error {
	room := mostAside - reconcilePage - len(w.refused)
	if room >= 0 {
		if err := w.insist(ctx, room); err != nil {
			return err
		}
	}
	if len(w.aside)+len(w.refused) > mostAside-reconcilePage {
		return errTooMany
	}
	w.sideBySide(ctx, len(ids), func(i int) {
		w.one(ctx, setAside{instanceID: ids[i], from: w.from, page: w.page}, reconcileTries)
	})
	return ended(ctx)
}

// insist tries those that are set aside until no more than most are left, or nothing has succeeded for too long.
func (w *reconciler) insist(ctx context.Context, most int) error {
	for rest := retrybudget.Delays(); len(w.aside) > most && !w.budget.Exhausted(); {
		if err := w.client.sleep(ctx, rest()); err != nil {
			return err
		}
		w.again(ctx, func(setAside) bool { return true })
	}
	return ended(ctx)
}

// again tries once more those that are set aside which are chosen.
func (w *reconciler) again(ctx context.Context, chosen func(setAside) bool) {
	before := w.aside
	var tried, rest []setAside
	for _, in := range before {
		if chosen(in) {
			tried = append(tried, in)
		} else {
			rest = append(rest, in)
		}
	}
	w.aside = rest
	w.sideBySide(ctx, len(tried), func(i int) { w.one(ctx, tried[i], 1) })
	if ctx.Err() != nil {
		w.aside = before // some of them may be done
	}
}

// sideBySide calls do with each of n numbers, until ctx ends.
func (w *reconciler) sideBySide(ctx context.Context, n int, do func(i int)) {
	var working sync.WaitGroup
	places := make(chan struct{}, w.atOnce)
	for i := range n {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		working.Go(func() {
			do(i)
			<-places
		})
	}
	working.Wait()
}

// one reconciles an instance, and counts it or sets it aside.
func (w *reconciler) one(ctx context.Context, in setAside, tries int) {
	in.within = min(max(tryTime, 2*in.within), longestTry)
	did, err := w.try(ctx, in, tries)
	if ctx.Err() != nil {
		return // it is not counted: the next call begins with its page, or with its name
	}
	in.err = err
	later := mayYetSucceed(err)
	if !later {
		w.count(did, err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case later:
		w.aside = append(w.aside, in)
	case err != nil && !errors.Is(err, provider.ErrCorrupt): // such as a session that has expired: the instance is well
		w.refused = append(w.refused, in)
	default:
		delete(w.named, in.instanceID)
	}
}

// try repeats a call that may yet succeed, with short rests. One that took too long is not repeated at once: it holds a place.
func (w *reconciler) try(ctx context.Context, in setAside, tries int) (did provider.ReconcileResult, err error) {
	for rest := time.Second; ; rest *= 2 {
		err = within(ctx, cmp.Or(in.within, tryTime), "ReconcileInstance", in.instanceID, func(ctx context.Context) (err error) {
			did, err = w.hub.ReconcileInstance(ctx, in.instanceID, w.how)
			return err
		})
		if err == nil {
			w.budget.Succeeded()
			return did, nil
		}
		if !mayYetSucceed(err) || ctx.Err() != nil {
			return did, err
		}
		w.budget.Failed(err)
		if tries--; tries == 0 || errors.Is(err, errTooLong) {
			return did, err
		}
		if err := w.client.sleep(ctx, rest); err != nil {
			return did, err
		}
	}
}

// count counts an instance that is done, or has failed.
func (w *reconciler) count(did provider.ReconcileResult, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	so := &w.so
	so.Instances++
	so.Sent += int64(did.Sent)
	so.RejectedOutputs += int64(len(did.RejectedOutputs))
	so.SkippedOutputs += int64(did.SkippedOutputs)
	so.LostChildren += int64(did.LostChildren)
	if did.Truncated {
		so.TruncatedInstances++
	}
	switch {
	case err != nil:
		so.Failed++
		if len(so.Errors) < reconcileErrors {
			so.Errors = append(so.Errors, err.Error())
		}
	case did.NotFound:
		so.NotFound++
	case did.Deleted:
		so.Deleted++
	case did.EndedBeforeSince:
		so.EndedBeforeLookback++
	case did.Ended:
		so.Ended++
	default:
		so.Active++
	}
}

// stand returns how far all has come. To go on from its Cursor does all that is not done: what is set aside or was refused, too.
func (w *reconciler) stand() ReconcileResult {
	so := w.so
	so.Errors = slices.Clone(so.Errors)
	so.Deferred = int64(len(w.aside))
	so.Cursor = w.place().String()
	return so
}

// conclude returns what came of all, with the error that ended it, if any. What is set aside by now has failed.
func (w *reconciler) conclude(err error) (ReconcileResult, error) {
	left := w.left()
	if err != nil {
		so := w.stand()
		so.RemainingInstances = left
		return so, err
	}
	for i := range w.aside {
		w.count(provider.ReconcileResult{}, w.aside[i].err)
	}
	w.aside = nil
	so := w.stand()
	so.RemainingInstances, so.Cursor = left, ""
	if so.Failed > 0 {
		err = fmt.Errorf("%d of %d instances failed, first error: %s", so.Failed, so.Instances, so.Errors[0])
	}
	return so, err
}

// left returns the ids of those that are not done and could be: of those that were named, also what was not tried.
func (w *reconciler) left() []string {
	ids := slices.Collect(maps.Keys(w.named))
	for _, in := range slices.Concat(w.aside, w.refused) {
		ids = append(ids, in.instanceID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ended returns an error where ctx has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("stopped: %w", context.Cause(ctx))
}
