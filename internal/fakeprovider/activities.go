package fakeprovider

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
	"github.com/perdure/perdure/provider/outputs"
)

// facts is what is stored about the activities of an execution apart from its history, by activity ID.
type facts struct {
	records map[int64]*record
	retries map[int64]provider.ActivityRetry
}

// record is an activity record with the run lease of its activity.
type record struct {
	provider.ActivityRecord

	run       *provider.Run
	abandoned bool
	outcome   *provider.ActivityOutcome // of the run's attempt
}

// factsOf returns the facts of an execution. Those of a deleted execution are not stored.
func (p *Provider) factsOf(executionID string) *facts {
	f := p.facts[executionID]
	if f == nil {
		f = &facts{records: map[int64]*record{}, retries: map[int64]provider.ActivityRetry{}}
		if x := p.executions[executionID]; x == nil || !x.erased {
			p.facts[executionID] = f
		}
	}
	return f
}

// record returns the record of an activity and creates it if necessary.
func (f *facts) record(activityID int64) *record {
	r := f.records[activityID]
	if r == nil {
		r = &record{ActivityRecord: provider.ActivityRecord{ActivityID: activityID}}
		f.records[activityID] = r
	}
	return r
}

// PutActivityRecords implements provider.Activities.
func (p *Provider) PutActivityRecords(
	ctx context.Context, executionID string, records ...provider.ActivityRecord,
) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	for i := range records {
		p.factsOf(executionID).put(&records[i])
	}
	return nil
}

// put writes the non-zero fields of a record, unless better knowledge is stored.
func (f *facts) put(n *provider.ActivityRecord) {
	r := provider.ActivityRecord{ActivityID: n.ActivityID}
	if old := f.records[n.ActivityID]; old != nil {
		r = old.ActivityRecord
	}
	neverStarted := n.CancelOutcome == provider.OutcomeNeverStarted
	lateBeat := !n.LastHeartbeatAt.IsZero() && n.LastHeartbeatAt.Before(r.LastHeartbeatAt)
	if neverStarted && r.CancelOutcome != "" || !neverStarted && lateBeat {
		return
	}
	before := r
	for _, t := range []struct{ to, from *time.Time }{
		{&r.SeenAt, &n.SeenAt},
		{&r.EndedAt, &n.EndedAt},
		{&r.LastHeartbeatAt, &n.LastHeartbeatAt},
		{&r.UnknownAt, &n.UnknownAt},
		{&r.BegunAt, &n.BegunAt},
	} {
		if !t.from.IsZero() {
			*t.to = *t.from
		}
	}
	r.CancelOutcome = cmp.Or(n.CancelOutcome, r.CancelOutcome)
	r.UnknownBuild = cmp.Or(n.UnknownBuild, r.UnknownBuild)
	r.HeartbeatAttempt = cmp.Or(n.HeartbeatAttempt, r.HeartbeatAttempt)
	r.TimedOutAttempt = cmp.Or(n.TimedOutAttempt, r.TimedOutAttempt)
	if len(n.Details) > 0 {
		r.Details = slices.Clone(n.Details)
	}
	if n.InvocationTimeoutAttempt > 0 {
		r.InvocationTimeoutAttempt, r.InvocationTimeouts = n.InvocationTimeoutAttempt, n.InvocationTimeouts
	}
	if n.Pending != nil {
		r.Pending, r.PendingAttempt = n.Pending, n.PendingAttempt
	}
	if encode(r) != encode(before) { // an empty record leaves nothing
		f.record(n.ActivityID).ActivityRecord = r
	}
}

// ReadActivityRecord implements provider.Activities.
func (p *Provider) ReadActivityRecord(
	ctx context.Context, executionID string, activityID int64,
) (provider.ActivityRecord, error) {
	none := provider.ActivityRecord{ActivityID: activityID}
	if err := p.begin(ctx); err != nil {
		return none, err
	}
	defer p.mu.Unlock()
	if r := p.factsOf(executionID).records[activityID]; r != nil {
		return r.ActivityRecord, nil
	}
	return none, nil
}

// ReadActivityRecords implements provider.Instances.
func (p *Provider) ReadActivityRecords(
	ctx context.Context, executionID string,
) iter.Seq2[provider.ActivityRecord, error] {
	return sequence(ctx, p, func() (all []provider.ActivityRecord) {
		records := p.factsOf(executionID).records
		for _, id := range slices.Sorted(maps.Keys(records)) {
			all = append(all, records[id].ActivityRecord)
		}
		return all
	})
}

// sequence yields what read returns while the hub is locked.
func sequence[T any](ctx context.Context, p *Provider, read func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := p.begin(ctx); err != nil {
			var none T
			yield(none, err)
			return
		}
		all := read()
		p.mu.Unlock()
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// HeartbeatPending implements provider.Completions.
func (p *Provider) HeartbeatPending(
	ctx context.Context, executionID string, b provider.PendingHeartbeat,
) (counted bool, err error) {
	if err := p.begin(ctx); err != nil {
		return false, err
	}
	defer p.mu.Unlock()
	r := p.factsOf(executionID).record(b.ActivityID)
	late := r.HeartbeatAttempt > b.Attempt || r.HeartbeatAttempt == b.Attempt && r.LastHeartbeatAt.After(b.At)
	if late || r.TimedOutAttempt >= b.Attempt {
		return false, nil
	}
	r.LastHeartbeatAt, r.HeartbeatAttempt = b.At, b.Attempt
	if len(b.Details) > 0 {
		r.Details = slices.Clone(b.Details)
	}
	if b.Cancelled && r.SeenAt.IsZero() {
		r.SeenAt = b.At
	}
	return true, nil
}

// TimeOutPending implements provider.Completions.
func (p *Provider) TimeOutPending(
	ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time,
) (ended bool, err error) {
	if err := p.begin(ctx); err != nil {
		return false, err
	}
	defer p.mu.Unlock()
	r := p.factsOf(executionID).record(activityID)
	if r.TimedOutAttempt != attempt && !r.LastHeartbeatAt.Equal(beatenAt) {
		return false, nil
	}
	r.TimedOutAttempt = attempt
	return true, nil
}

// ClaimRun implements provider.WorkItems.
func (p *Provider) ClaimRun(ctx context.Context, c provider.Run) (claim provider.RunClaim, err error) {
	if err := p.begin(ctx); err != nil {
		return claim, err
	}
	defer p.mu.Unlock()
	r := p.factsOf(c.ExecutionID).record(c.ActivityID)
	claim.PreviousRecord = r.ActivityRecord
	if r.run != nil && r.run.Token != c.Token {
		previous := *r.run
		previous.Abandoned = r.abandoned
		claim.PreviousRun = &previous
	}
	if r.outcome != nil && r.run != nil && r.run.Attempt == c.Attempt {
		claim.Outcome = r.outcome
		return claim, nil
	}
	if b := claim.PreviousRun; b != nil && b.Attempt >= c.Attempt && (b.Attempt > c.Attempt || b.Until.After(p.now())) {
		return provider.RunClaim{}, nil
	}
	claim.Held, r.run, r.outcome = true, &c, nil
	cancels, next := p.cancelsSince(c.ExecutionID, c.Segment)
	claim.Cancel, claim.CancelsFrom = cancels.Of(c.ActivityID), next
	return claim, nil
}

// CompleteRun implements provider.WorkItems.
func (p *Provider) CompleteRun(ctx context.Context, c provider.Run, o *provider.ActivityOutcome) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	r := p.factsOf(c.ExecutionID).record(c.ActivityID)
	if r.run == nil || r.run.Token != c.Token {
		return fmt.Errorf("fake: run of activity #%d: %w", c.ActivityID, provider.ErrLockLost)
	}
	outcome := *o
	r.outcome = &outcome
	return nil
}

// ReleaseRun implements provider.WorkItems.
func (p *Provider) ReleaseRun(ctx context.Context, c provider.Run, leave *provider.Run) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	r := p.factsOf(c.ExecutionID).record(c.ActivityID)
	if r.run == nil || r.run.Token != c.Token {
		return nil
	}
	r.run = nil
	if leave != nil {
		run := *leave
		r.run, r.abandoned = &run, r.abandoned || leave.Abandoned
	}
	return nil
}

// ReadCancels implements provider.Activities.
func (p *Provider) ReadCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	if err := p.begin(ctx); err != nil {
		return nil, from, err
	}
	defer p.mu.Unlock()
	cancels, next := p.cancelsSince(executionID, from)
	return cancels, next, nil
}

// PollCancels implements provider.Activities.
func (p *Provider) PollCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	return p.ReadCancels(ctx, executionID, from)
}

// cancelsSince returns the decisions of segments from one on, and the open ones of earlier segments.
func (p *Provider) cancelsSince(executionID string, from int64) (cancels provider.Cancels, next int64) {
	next = max(from, 0)
	x := p.executions[executionID]
	if x == nil {
		return nil, next
	}
	for _, d := range x.decisions {
		for i := range d.cancels {
			if d.segment >= from || d.cancels[i].All {
				cancels = append(cancels, d.cancels[i])
			}
		}
		next = max(next, d.segment+1)
	}
	return cancels, next
}

// ReadSettled implements provider.Activities.
func (p *Provider) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	s := provider.Settlements{Next: from}
	if err := p.begin(ctx); err != nil {
		return s, err
	}
	defer p.mu.Unlock()
	x := p.executions[executionID]
	switch {
	case x == nil:
	case x.erased:
		s.Ended, s.Deleted = true, true
	default:
		for i := from; i < int64(len(x.segments)); i++ {
			s.Apply(&x.segments[i])
		}
	}
	return s, nil
}

// ReadRetry implements provider.Activities.
func (p *Provider) ReadRetry(
	ctx context.Context, executionID string, activityID int64,
) (provider.ActivityRetry, error) {
	if err := p.begin(ctx); err != nil {
		return provider.ActivityRetry{ActivityID: activityID}, err
	}
	defer p.mu.Unlock()
	return p.retry(executionID, activityID), nil
}

func (p *Provider) retry(executionID string, activityID int64) provider.ActivityRetry {
	r := p.factsOf(executionID).retries[activityID]
	r.ActivityID = activityID
	return r
}

// ReadRetries implements provider.Instances.
func (p *Provider) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return sequence(ctx, p, func() []provider.ActivityRetry {
		return slices.SortedFunc(maps.Values(p.factsOf(executionID).retries), func(a, b provider.ActivityRetry) int {
			return cmp.Compare(a.ActivityID, b.ActivityID)
		})
	})
}

// RetryActivities implements provider.Orchestrations.
func (p *Provider) RetryActivities(
	ctx context.Context, q *provider.RetryRequest,
) (out provider.RetryResult, err error) {
	if err := p.begin(ctx); err != nil {
		return out, err
	}
	defer p.mu.Unlock()
	_, _, conflict := p.headOf(q.InstanceID, q.Head)
	var sends []attempt
	exhausted := map[int64]bool{}
	onlyRead := len(q.Due) == 0
	out.Failed = make([]provider.RetryVerdict, len(q.Failed))
	for i := range q.Failed {
		o := &q.Failed[i]
		if exhausted[o.ActivityID] {
			continue
		}
		verdict, next := p.judge(q.Head.ExecutionID, o)
		if out.Failed[i] = verdict; verdict == provider.RetryNext && conflict == nil {
			p.factsOf(q.Head.ExecutionID).retries[o.ActivityID] = next
			sends = append(sends, attempt{next, o.Segment})
		}
		exhausted[o.ActivityID] = verdict == provider.RetryExhausted
		onlyRead = onlyRead && verdict == provider.RetryExhausted
	}
	if !onlyRead && conflict != nil {
		return provider.RetryResult{}, conflict
	}
	due, waiting := p.dueAttempts(q)
	out.Waiting, out.Verified = waiting, !onlyRead
	out.RejectedOutputs = p.sendAttempts(q, append(sends, due...))
	return out, nil
}

// judge returns the verdict on a failure, and the attempt that is then the current one.
func (p *Provider) judge(
	executionID string, o *provider.ActivityOutcome,
) (verdict provider.RetryVerdict, next provider.ActivityRetry) {
	r := p.retry(executionID, o.ActivityID)
	switch isCurrent := r.Attempt == 0 || r.Attempt == o.Attempt; {
	case r.Attempt == o.Attempt+1 && r.Run == o.Run: // the failure was reported before
		return provider.RetryNext, r
	case isCurrent && o.RetryAt != nil:
		return provider.RetryNext, provider.ActivityRetry{
			ActivityID: o.ActivityID, Attempt: o.Attempt + 1, Run: o.Run, At: *o.RetryAt, FailedAt: p.time(),
			Error: o.Error.Truncate(maxRetryError, 0), Ended: cmp.Or(o.Ended, r.Ended),
		}
	case isCurrent:
		return provider.RetryExhausted, r
	default:
		return provider.RetryStale, r
	}
}

// dueAttempts returns the due attempts to send, and the ones that are pending: one for each entry of q.Due, or nil.
func (p *Provider) dueAttempts(q *provider.RetryRequest) (sends []attempt, waiting []provider.ActivityRetry) {
	for i := range q.Due {
		d := &q.Due[i]
		r := p.retry(q.Head.ExecutionID, d.ActivityID)
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

// sendAttempts sends attempts with a delay, or with a timer if they are further away than the queue can delay.
func (p *Provider) sendAttempts(q *provider.RetryRequest, sends []attempt) (refused []provider.OutputFailure) {
	for _, a := range sends {
		w, err := p.workItem(q.InstanceID, q.Head.ExecutionID, a.segment, a.ActivityID)
		most := maxDelay
		if w.ExclusiveKey != "" {
			most = time.Second
		}
		switch {
		case err != nil:
			refused = append(refused, provider.OutputFailure{EventID: a.ActivityID, Failure: history.Failure{
				Type: "OutputRefusedError", Message: err.Error(), NonRetryable: true,
			}})
		case a.At.Sub(p.now()) > most:
			p.sendTimer(&provider.Timer{
				V: provider.WireVersion, InstanceID: q.InstanceID, ExecutionID: q.Head.ExecutionID, Segment: a.segment,
				TimerID: a.ActivityID, FireAt: a.At, Attempt: a.Attempt,
			})
		default:
			w.Attempt, w.NotBefore, w.PossibleDuplicate = a.Attempt, &a.At, true
			never := p.sendOutputs(outputs.Set{WorkItems: []provider.WorkItem{w}})
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
func (p *Provider) PutPendingAttempts(
	ctx context.Context, instanceID string, head provider.Head, updates ...provider.PendingAttemptUpdate,
) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	_, _, conflict := p.headOf(instanceID, head)
	f := p.factsOf(head.ExecutionID)
	for i := range updates {
		u := &updates[i]
		r := p.retry(head.ExecutionID, u.ActivityID)
		changed := r.Attempt != u.Was.Attempt || r.NextCheckID != u.Was.NextCheckID
		if !u.Sent && (conflict != nil || changed) {
			return fmt.Errorf("fake: instance %q: pending activity #%d: %w", instanceID, u.ActivityID,
				provider.ErrConflict)
		}
	}
	for i := range updates {
		u := &updates[i]
		if r := p.retry(head.ExecutionID, u.ActivityID); !u.Sent {
			pending := u.Pending
			r.Attempt, r.Pending, r.NextCheckAt, r.NextCheckID = u.Attempt, &pending, u.NextCheckAt, u.NextCheckID
			if r.Error == nil {
				r.At, r.FailedAt, r.Error = u.Pending.Since, u.Pending.Since, &history.Failure{}
			}
			f.retries[u.ActivityID] = r
		}
		if !u.NextCheckAt.IsZero() {
			p.sendTimer(&provider.Timer{
				V: provider.WireVersion, InstanceID: instanceID, ExecutionID: head.ExecutionID,
				Segment: u.Pending.Segment, TimerID: u.ActivityID, FireAt: u.NextCheckAt, Attempt: u.Attempt,
				WaitForCancellation: u.Pending.WaitForCancellation,
			})
		}
	}
	return nil
}
