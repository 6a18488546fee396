package fakeprovider

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// DecodeTimers implements provider.Timers.
func (p *Provider) DecodeTimers(
	records []provider.Record,
) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	for _, r := range records {
		t, err := wire.DecodeTimer(r.Body)
		if err == nil {
			err = checkHub(&t.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		timers = append(timers, provider.LockedTimer{Timer: t, Record: r})
	}
	return timers, unreadable
}

// HoldTimers implements provider.Timers.
func (p *Provider) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	for i := range timers {
		p.sendTimer(&timers[i])
	}
	return nil
}

// The intervals at which the sweeper finds a pending instance again.
const (
	firstWake = 2 * time.Minute
	lastWake  = time.Hour
)

// PendingInstances implements provider.Sweeps.
func (p *Provider) PendingInstances(
	ctx context.Context, startedBefore time.Time,
) iter.Seq2[[]provider.Instance, error] {
	return p.search(ctx, func() (found []provider.Instance) {
		now := p.now()
		for _, in := range p.withStatus(provider.StatusPending) {
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

// withStatus returns the instances with a status, sorted by ID.
func (p *Provider) withStatus(s provider.RuntimeStatus) (found []*instance) {
	for _, id := range p.identities {
		if id.instance != nil && id.instance.Status == s {
			found = append(found, id.instance)
		}
	}
	slices.SortFunc(found, func(a, b *instance) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return found
}

// search yields what find returns, if anything.
func (p *Provider) search(ctx context.Context, find func() []provider.Instance) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(nil, err)
			return
		}
		found := find()
		p.mu.Unlock()
		if len(found) > 0 {
			yield(found, nil)
		}
	}
}

// blockedRound is a search for blocked instances: for one build, and again after intervals that double.
type blockedRound struct {
	build  string
	number int
	next   time.Time
	past   map[string]time.Time // when other builds had reported last
}

// The intervals of searches for blocked instances.
const (
	firstRound = 10 * time.Minute
	lastRound  = time.Hour
)

// BlockedInstances implements provider.Sweeps.
func (p *Provider) BlockedInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return p.search(ctx, func() (found []provider.Instance) {
		blocked := p.withStatus(provider.StatusBlocked)
		if len(blocked) == 0 {
			return nil
		}
		p.askForReport()
		latest, now := "", p.now()
		if n := len(p.builds); n > 0 {
			latest = p.builds[n-1].ID
		}
		r := &p.round
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
		r.build, r.next = latest, now.Add(min(firstRound<<min(r.number, 8), lastRound)) //nolint:mnd // beyond the last
		for _, in := range blocked {
			if in.BlockedBy != latest {
				found = append(found, in.Instance)
			}
		}
		return found
	})
}

// DeletingInstances implements provider.Sweeps. There are none.
func (p *Provider) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return p.search(ctx, func() []provider.Instance { return nil })
}
