package memhub

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// attempts stores and sends the current attempts of activities that have failed.
type attempts struct {
	*base

	histories  *histories
	instances  *instances
	activities *activities
	workQueues *workQueues
	timers     *timers
}

// ReadRetry implements provider.Activities.
func (st *attempts) ReadRetry(
	ctx context.Context, executionID string, activityID int64,
) (provider.ActivityRetry, error) {
	if err := st.begin(ctx); err != nil {
		return provider.ActivityRetry{ActivityID: activityID}, err
	}
	defer st.mu.Unlock()
	return st.current(executionID, activityID), nil
}

// current returns the current attempt of an activity. Its Attempt is 0 if the activity has not failed.
func (st *attempts) current(executionID string, activityID int64) provider.ActivityRetry {
	r := st.activities.factsOf(executionID).retries[activityID]
	r.ActivityID = activityID
	return r
}

// ReadRetries implements provider.Instances.
func (st *attempts) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return sequence(ctx, st.base, func() []provider.ActivityRetry {
		byActivity := func(a, b provider.ActivityRetry) int { return cmp.Compare(a.ActivityID, b.ActivityID) }
		return slices.SortedFunc(maps.Values(st.activities.factsOf(executionID).retries), byActivity)
	})
}

// RetryActivities implements provider.Orchestrations.
func (st *attempts) RetryActivities(
	ctx context.Context, q *provider.RetryRequest,
) (out provider.RetryResult, err error) {
	return callFor(ctx, st.base, func() (provider.RetryResult, error) {
		_, _, conflict := st.instances.headOf(q.InstanceID, q.Head)
		var sends []attempt
		exhausted := map[int64]bool{}
		onlyRead := len(q.Due) == 0
		out.Failed = make([]provider.RetryVerdict, len(q.Failed))
		for i := range q.Failed {
			o := &q.Failed[i]
			if exhausted[o.ActivityID] {
				continue
			}
			verdict, next := st.decide(q.Head.ExecutionID, o)
			if out.Failed[i] = verdict; verdict == provider.RetryNext && conflict == nil {
				st.activities.factsOf(q.Head.ExecutionID).retries[o.ActivityID] = next
				sends = append(sends, attempt{next, o.Segment})
			}
			exhausted[o.ActivityID] = verdict == provider.RetryExhausted
			onlyRead = onlyRead && verdict == provider.RetryExhausted
		}
		if !onlyRead && conflict != nil {
			return provider.RetryResult{}, conflict
		}
		due, waiting := st.dueAttempts(q)
		out.Waiting, out.Verified = waiting, !onlyRead
		out.RejectedOutputs = st.sendAttempts(q, append(sends, due...))
		return out, nil
	})
}

// decide returns the verdict on a failure, and the resulting current attempt.
func (st *attempts) decide(
	executionID string, o *provider.ActivityOutcome,
) (verdict provider.RetryVerdict, next provider.ActivityRetry) {
	r := st.current(executionID, o.ActivityID)
	switch isCurrent := r.Attempt == 0 || r.Attempt == o.Attempt; {
	case r.Attempt == o.Attempt+1 && r.Run == o.Run: // the failure was reported before
		return provider.RetryNext, r
	case isCurrent && o.RetryAt != nil:
		return provider.RetryNext, provider.ActivityRetry{
			ActivityID: o.ActivityID, Attempt: o.Attempt + 1, Run: o.Run, At: *o.RetryAt, FailedAt: st.time(),
			Error: o.Error.Truncate(maxRetryError, 0), Ended: cmp.Or(o.Ended, r.Ended),
		}
	case isCurrent:
		return provider.RetryExhausted, r
	default:
		return provider.RetryStale, r
	}
}

// dueAttempts returns the due attempts to send, and the pending attempts: one for each entry of q.Due, or nil.
func (st *attempts) dueAttempts(q *provider.RetryRequest) (sends []attempt, waiting []provider.ActivityRetry) {
	for i := range q.Due {
		d := &q.Due[i]
		r := st.current(q.Head.ExecutionID, d.ActivityID)
		again := r.Attempt == d.Attempt+1 && r.Run == provider.TimeoutRunID(d.Attempt, d.MessageID)
		switch {
		case r.Attempt == 0 || d.Attempt > 0 && d.Attempt != r.Attempt && !again:
		case r.Pending != nil && !again:
			if waiting == nil {
				waiting = make([]provider.ActivityRetry, len(q.Due))
			}
			waiting[i] = r
		default:
			sends = append(sends, attempt{r, d.Segment})
		}
	}
	return sends, waiting
}

// maxRetryError is the maximum size of the message of a stored failure.
const maxRetryError = 4 << 10

// attempt is an attempt to send, with the segment that scheduled its activity.
type attempt struct {
	provider.ActivityRetry

	segment int64
}

// sendAttempts sends attempts with a delay, or with a timer if the delay exceeds the limit of the queue.
func (st *attempts) sendAttempts(q *provider.RetryRequest, sends []attempt) (refused []provider.OutputFailure) {
	for _, a := range sends {
		w, err := st.histories.workItem(q.InstanceID, q.Head.ExecutionID, a.segment, a.ActivityID)
		most := maxDelay
		if w.ExclusiveKey != "" {
			most = time.Second
		}
		switch {
		case err != nil:
			refused = append(refused, provider.OutputFailure{EventID: a.ActivityID, Failure: history.Failure{
				Type: "OutputRefusedError", Message: err.Error(), NonRetryable: true,
			}})
		case a.At.Sub(st.now()) > most:
			st.timers.send(&provider.Timer{
				V: provider.WireVersion, InstanceID: q.InstanceID, ExecutionID: q.Head.ExecutionID, Segment: a.segment,
				TimerID: a.ActivityID, FireAt: a.At, Attempt: a.Attempt,
			})
		default:
			w.Attempt, w.NotBefore, w.PossibleDuplicate = a.Attempt, &a.At, true
			never := st.workQueues.sendAll([]provider.WorkItem{w})
			for i := range never {
				if w.WaitForCancellation { // an earlier attempt has run
					never[i].Ended = cmp.Or(a.Ended, history.OutcomeReturned)
				}
			}
			refused = append(refused, never...)
		}
	}
	return refused
}

// PutPendingAttempts implements provider.Orchestrations.
func (st *attempts) PutPendingAttempts(
	ctx context.Context, instanceID string, head provider.Head, updates ...provider.PendingAttemptUpdate,
) error {
	return st.call(ctx, func() error {
		_, _, conflict := st.instances.headOf(instanceID, head)
		f := st.activities.factsOf(head.ExecutionID)
		for i := range updates {
			u := &updates[i]
			r := st.current(head.ExecutionID, u.ActivityID)
			changed := r.Attempt != u.Was.Attempt || r.NextCheckID != u.Was.NextCheckID
			if !u.Sent && (conflict != nil || changed) {
				return fmt.Errorf("fake: instance %q: pending activity #%d: %w", instanceID, u.ActivityID,
					provider.ErrConflict)
			}
		}
		for i := range updates {
			u := &updates[i]
			if r := st.current(head.ExecutionID, u.ActivityID); !u.Sent {
				pending := u.Pending
				r.Attempt, r.Pending, r.NextCheckAt, r.NextCheckID = u.Attempt, &pending, u.NextCheckAt, u.NextCheckID
				if r.Error == nil {
					r.At, r.FailedAt, r.Error = u.Pending.Since, u.Pending.Since, &history.Failure{}
				}
				f.retries[u.ActivityID] = r
			}
			if !u.NextCheckAt.IsZero() {
				st.timers.send(&provider.Timer{
					V: provider.WireVersion, InstanceID: instanceID, ExecutionID: head.ExecutionID,
					Segment: u.Pending.Segment, TimerID: u.ActivityID, FireAt: u.NextCheckAt, Attempt: u.Attempt,
					WaitForCancellation: u.Pending.WaitForCancellation,
				})
			}
		}
		return nil
	})
}
