package memhub

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// sweeps finds instances that make no progress (provider.Sweeps).
type sweeps struct {
	*base

	builds    *builds
	instances *instances
	round     blockedRound
}

// These are the intervals at which the sweeper finds a pending instance again.
const (
	firstWake = 2 * time.Minute
	lastWake  = time.Hour
)

// PendingInstances implements provider.Sweeps.
func (st *sweeps) PendingInstances(
	ctx context.Context, startedBefore time.Time,
) iter.Seq2[[]provider.Instance, error] {
	return search(ctx, st.base, func() (found []provider.Instance) {
		now := st.now()
		for _, in := range st.instances.withStatus(provider.StatusPending) {
			begins := in.CreatedAt
			if in.StartAt.After(begins) {
				begins = in.StartAt
			}
			if begins.After(startedBefore) || in.wakeAt.After(now) {
				continue
			}
			in.wakeAt = now.Add(min(max(now.Sub(begins), firstWake), lastWake))
			found = append(found, in.Instance)
		}
		return found
	})
}

// blockedRound is a search for blocked instances: for one build, and again after intervals that double.
type blockedRound struct {
	build  string
	number int
	next   time.Time
	past   map[string]time.Time // times of the last reports of other builds
}

// The intervals of searches for blocked instances.
const (
	firstRound = 10 * time.Minute
	lastRound  = time.Hour
)

// BlockedInstances implements provider.Sweeps.
func (st *sweeps) BlockedInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return search(ctx, st.base, func() (found []provider.Instance) {
		blocked := st.instances.withStatus(provider.StatusBlocked)
		if len(blocked) == 0 {
			return nil
		}
		st.builds.requestReport()
		latest, now := "", st.now()
		if n := len(st.builds.reported); n > 0 {
			latest = st.builds.reported[n-1].ID
		}
		r := &st.round
		at, was := r.past[latest]
		isNew := latest != r.build && (!was || now.Sub(at) > lastRound)
		if !isNew && now.Before(r.next) {
			return nil
		}
		if r.past == nil {
			r.past = map[string]time.Time{}
		}
		r.past[r.build] = now
		if r.number++; isNew {
			r.number = 0
		}
		r.build, r.next = latest, now.Add(min(firstRound<<min(r.number, 8), lastRound)) // beyond the last
		for _, in := range blocked {
			if in.BlockedBy != latest {
				found = append(found, in.Instance)
			}
		}
		return found
	})
}

// UnblockInstance implements provider.Sweeps.
func (st *sweeps) UnblockInstance(ctx context.Context, instanceID, executionID string) error {
	return st.call(ctx, func() error {
		in, err := st.instances.find(instanceID)
		if err != nil || in.ExecutionID != executionID || in.Status.Terminal() || in.Status == provider.StatusPaused {
			return nil //nolint:nilerr // there is no such execution to unblock
		}
		in.UpdatedAt, in.Paused, in.Diagnosis, in.BlockedBy = st.time(), nil, nil, ""
		in.Status = provider.StatusRunning
		return nil
	})
}

// DeletingInstances implements provider.Sweeps. There are none.
func (st *sweeps) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return search(ctx, st.base, func() []provider.Instance { return nil })
}
