package memhub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outcomes"
	"github.com/perdure/perdure/provider/wire"
	"github.com/perdure/perdure/provider/worktoken"
)

// workQueues sends, decodes and completes work items, and signs their tokens.
type workQueues struct {
	*base

	queues    *queues
	inbox     *inbox
	histories *histories
	tokens    *worktoken.Signer
}

// DecodeWorkItems implements provider.WorkItems.
func (st *workQueues) DecodeWorkItems(
	ctx context.Context, records []provider.Record,
) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	items, unreadable = decodeRecords(records, func(r provider.Record) (provider.LockedWorkItem, error) {
		w, err := wire.DecodeWorkItem(r.Body)
		if err == nil {
			err = checkHub(&w.Hub)
		}
		return provider.LockedWorkItem{WorkItem: w, Record: r}, err
	})
	provider.AttachCancelReads(ctx, items, st.histories.ReadCancels)
	return items, unreadable
}

// AckWorkItems implements provider.WorkItems. It sends outcomes before it deletes records (R14).
func (st *workQueues) AckWorkItems(
	ctx context.Context, name string, done []provider.CompletedWorkItem,
) (failed []provider.Record, err error) {
	if err := st.begin(ctx); err != nil {
		return recordsOf(done), err
	}
	defer st.mu.Unlock()
	q, err := st.queues.named(name)
	if err != nil && len(done) > 0 {
		return recordsOf(done), err
	}
	var errs []error
	var own []provider.CompletedWorkItem
	for _, d := range done {
		if d.Record.Held(st.now()) {
			own = append(own, d)
			continue
		}
		failed = append(failed, d.Record)
		errs = append(errs, fmt.Errorf("fake: activity #%d: %w", d.ActivityID, provider.ErrLockLost))
	}
	st.inbox.send(bundle(own)...)
	for _, d := range own {
		if !d.KeepRecord {
			q.Remove([]provider.Record{d.Record})
		}
	}
	return failed, errors.Join(errs...)
}

func recordsOf(done []provider.CompletedWorkItem) (all []provider.Record) {
	for i := range done {
		all = append(all, done[i].Record)
	}
	return all
}

// bundle returns messages with the outcomes of each execution.
func bundle(done []provider.CompletedWorkItem) []provider.Message {
	return outcomes.Bundle(done, maxBody/2, func(o *provider.ActivityOutcome) int { return len(encode(o)) })
}

// PutWorkItems implements provider.WorkItems.
func (st *workQueues) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	return st.call(ctx, func() error {
		if refused := st.sendAll(slices.Clone(items)); len(refused) > 0 {
			return fmt.Errorf("fake: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
		}
		return nil
	})
}

// sendAll sends work items, and returns the work items that can never be sent.
func (st *workQueues) sendAll(items []provider.WorkItem) (refused []provider.OutputFailure) {
	for i := range items {
		w := &items[i]
		if errorType, problem := st.send(w); errorType != "" {
			refused = append(refused, refuse(w.ActivityID, errorType, fmt.Sprintf("activity %q: %s", w.Name, problem)))
		}
	}
	return refused
}

// send sends a work item. If no queue can ever accept it, it returns the type of the failure and the problem.
func (st *workQueues) send(w *provider.WorkItem) (errorType, problem string) {
	w.Hub = Name
	w.Token = st.tokens.Sign(w)
	body := encode(w)
	q := st.queues.byName[w.Queue]
	base, exclusive := history.BaseQueue(w.Queue)
	switch {
	case q == nil && exclusive:
		return "ExclusiveQueueError", fmt.Sprintf("it has an exclusive key, but queue %q has no FIFO queue", base)
	case q == nil || w.Queue == provider.QueueInbox || w.Queue == provider.QueueTimers:
		return "UnknownQueueError", fmt.Sprintf("work queue %q does not exist", w.Queue)
	case tooLarge(body) != "":
		return history.TypePayloadTooLarge, tooLarge(body)
	}
	q.Send(st.now(), st.visibleAt(w), w.ExclusiveKey, body, workID(w))
	return "", ""
}

// visibleAt returns the time at which a work item becomes visible. A FIFO queue cannot delay records.
func (st *workQueues) visibleAt(w *provider.WorkItem) time.Time {
	if w.NotBefore == nil || w.ExclusiveKey != "" {
		return st.now()
	}
	return st.queues.delayedUntil(*w.NotBefore)
}

// workID identifies a work item in an exclusive queue, which drops repetitions.
func workID(w *provider.WorkItem) string {
	return fmt.Sprintf("%s %d %d %d %s", w.ExecutionID, w.ActivityID, w.Attempt, w.ResendCount, encode(w.Redrive))
}

// RenewWorkItemLocks implements provider.WorkItems.
func (st *workQueues) RenewWorkItemLocks(
	ctx context.Context, name string, lock time.Duration, items ...provider.LockedWorkItem,
) ([]provider.Renewal, error) {
	if err := st.begin(ctx); err != nil {
		return make([]provider.Renewal, len(items)), err
	}
	defer st.mu.Unlock()
	renewals := make([]provider.Renewal, len(items))
	q, err := st.queues.named(name)
	if err != nil {
		return renewals, err
	}
	until := st.now().Add(lock)
	for i := range items {
		it := &items[i]
		if r := q.Locked(st.now(), it.Record.ReceiptHandle); r != nil {
			r.VisibleAt, renewals[i].Until = until, until
		} else {
			renewals[i].Lost = true
		}
		if it.ExecutionID != "" {
			cancels, _ := st.histories.cancelsSince(it.ExecutionID, max(it.CancelsFrom, it.Segment))
			renewals[i].Cancel = cancels.Of(it.ActivityID)
		}
	}
	return renewals, nil
}

// VerifyWorkItemToken implements provider.Completions.
func (st *workQueues) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return callFor(ctx, st.base, func() (provider.WorkItem, error) {
		return st.tokens.Verify(token)
	})
}

// CompletionTokens implements provider.Completions.
func (st *workQueues) CompletionTokens(ctx context.Context) (provider.CompletionSigner, error) {
	return callFor(ctx, st.base, func() (provider.CompletionSigner, error) {
		return st.tokens, nil
	})
}

// VerifyCompletionToken implements provider.Completions.
func (st *workQueues) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return callFor(ctx, st.base, func() (provider.WorkItem, error) {
		return st.tokens.VerifyCompletion(token)
	})
}
