package memhub

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// activities stores the records of activities separately from the history. It permits one delivery of an activity to
// run at a time.
type activities struct {
	*base

	histories *histories
	byID      map[string]*facts // by execution ID
}

// facts are the records and retries of an execution's activities, by activity ID. They are stored separately from the
// history.
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

// factsOf returns the facts of an execution, and creates them if necessary. It does not store the facts of a deleted
// execution.
func (st *activities) factsOf(executionID string) *facts {
	f := st.byID[executionID]
	if f == nil {
		f = &facts{records: map[int64]*record{}, retries: map[int64]provider.ActivityRetry{}}
		if x := st.histories.byID[executionID]; x == nil || !x.erased {
			st.byID[executionID] = f
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
func (st *activities) PutActivityRecords(
	ctx context.Context, executionID string, records ...provider.ActivityRecord,
) error {
	return st.call(ctx, func() error {
		for i := range records {
			st.factsOf(executionID).put(&records[i])
		}
		return nil
	})
}

// put writes the non-zero fields of a record, unless the stored field takes precedence.
func (f *facts) put(n *provider.ActivityRecord) {
	r := provider.ActivityRecord{ActivityID: n.ActivityID}
	if old := f.records[n.ActivityID]; old != nil {
		r = old.ActivityRecord
	}
	neverStarted := n.CancelOutcome == provider.OutcomeNeverStarted
	lateHeartbeat := !n.LastHeartbeatAt.IsZero() && n.LastHeartbeatAt.Before(r.LastHeartbeatAt)
	if neverStarted && r.CancelOutcome != "" || !neverStarted && lateHeartbeat {
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
	r.EndedAttempt = cmp.Or(n.EndedAttempt, r.EndedAttempt)
	if len(n.Details) > 0 {
		r.Details = slices.Clone(n.Details)
	}
	if n.InvocationTimeoutAttempt > 0 {
		r.InvocationTimeoutAttempt, r.InvocationTimeouts = n.InvocationTimeoutAttempt, n.InvocationTimeouts
	}
	if n.Pending != nil {
		r.Pending, r.PendingAttempt = n.Pending, n.PendingAttempt
	}
	if encode(r) != encode(before) { // an empty record is not stored
		f.record(n.ActivityID).ActivityRecord = r
	}
}

// ReadActivityRecord implements provider.Activities.
func (st *activities) ReadActivityRecord(
	ctx context.Context, executionID string, activityID int64,
) (provider.ActivityRecord, error) {
	none := provider.ActivityRecord{ActivityID: activityID}
	if err := st.begin(ctx); err != nil {
		return none, err
	}
	defer st.mu.Unlock()
	if r := st.factsOf(executionID).records[activityID]; r != nil {
		return r.ActivityRecord, nil
	}
	return none, nil
}

// ReadActivityRecords implements provider.Instances.
func (st *activities) ReadActivityRecords(
	ctx context.Context, executionID string,
) iter.Seq2[provider.ActivityRecord, error] {
	return sequence(ctx, st.base, func() (all []provider.ActivityRecord) {
		records := st.factsOf(executionID).records
		for _, id := range slices.Sorted(maps.Keys(records)) {
			all = append(all, records[id].ActivityRecord)
		}
		return all
	})
}

// HeartbeatPending implements provider.Completions.
func (st *activities) HeartbeatPending(
	ctx context.Context, executionID string, b provider.PendingHeartbeat,
) (counted bool, err error) {
	return callFor(ctx, st.base, func() (bool, error) {
		r := st.factsOf(executionID).record(b.ActivityID)
		late := r.HeartbeatAttempt > b.Attempt || r.HeartbeatAttempt == b.Attempt && r.LastHeartbeatAt.After(b.At)
		if late || r.EndedAttempt >= b.Attempt {
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
	})
}

// EndPending implements provider.Completions.
func (st *activities) EndPending(
	ctx context.Context, executionID string, activityID int64, attempt int, lastHeartbeatAt time.Time,
) (ended bool, err error) {
	return callFor(ctx, st.base, func() (bool, error) {
		r := st.factsOf(executionID).record(activityID)
		if r.EndedAttempt != attempt && !r.LastHeartbeatAt.Equal(lastHeartbeatAt) {
			return false, nil
		}
		r.EndedAttempt = attempt
		return true, nil
	})
}

// ClaimRun implements provider.WorkItems.
func (st *activities) ClaimRun(ctx context.Context, c provider.Run) (claim provider.RunClaim, err error) {
	return callFor(ctx, st.base, func() (provider.RunClaim, error) {
		r := st.factsOf(c.ExecutionID).record(c.ActivityID)
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
		if b := claim.PreviousRun; b != nil &&
			(b.Attempt > c.Attempt || b.Attempt == c.Attempt && b.Until.After(st.now())) {
			return provider.RunClaim{}, nil
		}
		claim.Held, r.run, r.outcome = true, &c, nil
		cancels, next := st.histories.cancelsSince(c.ExecutionID, c.Segment)
		claim.Cancel, claim.CancelsFrom = cancels.Of(c.ActivityID), next
		return claim, nil
	})
}

// CompleteRun implements provider.WorkItems.
func (st *activities) CompleteRun(ctx context.Context, c provider.Run, o *provider.ActivityOutcome) error {
	return st.call(ctx, func() error {
		r := st.factsOf(c.ExecutionID).record(c.ActivityID)
		if r.run == nil || r.run.Token != c.Token {
			return fmt.Errorf("fake: run of activity #%d: %w", c.ActivityID, provider.ErrLockLost)
		}
		outcome := *o
		r.outcome = &outcome
		return nil
	})
}

// ReleaseRun implements provider.WorkItems.
func (st *activities) ReleaseRun(ctx context.Context, c provider.Run, leave *provider.Run) error {
	return st.call(ctx, func() error {
		r := st.factsOf(c.ExecutionID).record(c.ActivityID)
		if r.run == nil || r.run.Token != c.Token {
			return nil
		}
		r.run = nil
		if leave != nil {
			run := *leave
			r.run, r.abandoned = &run, r.abandoned || leave.Abandoned
		}
		return nil
	})
}
