// Package runlease acquires, renews and releases the run leases of activities. Only one delivery at a time holds the
// lease of an activity. The end that it reports is therefore the end of all code of the activity (R23), and an
// AtMostOnce attempt starts once (R32).
package runlease

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Lease is a run lease that a delivery holds, with the lease and the record that were stored before. A nil Lease was
// never acquired.
type Lease struct {
	// held is the lease. Its token is empty if another delivery has taken it over.
	held           provider.Run
	previous       *provider.Run
	previousRecord provider.ActivityRecord

	renewAt           time.Time
	renewing, failing bool // failing: the last renewal failed
}

// IsHeld reports whether the delivery holds the lease.
func (l *Lease) IsHeld() bool { return l != nil && l.held.Token != "" }

// Previous returns the lease of an earlier delivery, or nil, and the previous content of the activity's record.
func (l *Lease) Previous() (*provider.Run, provider.ActivityRecord) {
	if l == nil {
		return nil, provider.ActivityRecord{}
	}
	return l.previous, l.previousRecord
}

// Until returns the end of the lease.
func (l *Lease) Until() time.Time { return l.held.Until }

// RenewAt returns the time of the next renewal.
func (l *Lease) RenewAt() time.Time { return l.renewAt }

// StartRenewal reports whether a renewal is due. The caller must start a due renewal. Otherwise, next is the due time,
// or zero while a renewal runs.
func (l *Lease) StartRenewal(now time.Time) (start bool, next time.Time) {
	switch {
	case l.renewing:
		return false, time.Time{}
	case l.renewAt.After(now):
		return false, l.renewAt
	default:
		l.renewing = true
		return true, time.Time{}
	}
}

// EndRenewal records that a renewal has ended.
func (l *Lease) EndRenewal() { l.renewing = false }

// Lose records that another delivery has taken the lease over.
func (l *Lease) Lose() { l.held = provider.Run{} }

// Options holds the options of a Client.
type Options struct {
	Clock func() time.Time
	// Timeout is the length of a lease. A lease is renewed RenewalBuffer before the time of StopAt.
	Timeout, RenewalBuffer time.Duration
	// GracePeriod is the grace period of activities.
	GracePeriod time.Duration
}

// Client acquires and releases leases. The caller guards the leases with a lock, except during calls with a context.
type Client struct {
	provider provider.WorkItems
	options  Options
}

// NewClient returns a Client.
func NewClient(p provider.WorkItems, o Options) *Client { return &Client{p, o} }

// Next returns the lease to request now: an extension of l, or a new one.
func (c *Client) Next(l *Lease, it *provider.LockedWorkItem) provider.Run {
	next := provider.Run{
		ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Segment: it.Segment, Attempt: it.Attempt,
		Until: c.options.Clock().Add(c.options.Timeout),
	}
	if l.IsHeld() {
		next.Token = l.held.Token
	} else {
		next.Token = rand.Text()
	}
	return next
}

// Claim requests a lease.
func (c *Client) Claim(ctx context.Context, next provider.Run) (provider.RunClaim, error) {
	return c.provider.ClaimRun(ctx, next)
}

// Acquired returns the lease after a successful claim. If the delivery has waited for longer than its lease, another
// delivery may have had the lease in between.
func (c *Client) Acquired(l *Lease, next provider.Run, claim *provider.RunClaim) *Lease {
	if !l.IsHeld() || claim.PreviousRun != nil {
		l = &Lease{previous: claim.PreviousRun, previousRecord: claim.PreviousRecord}
	}
	c.Extended(l, next)
	return l
}

// Extended records the new end of a lease.
func (c *Client) Extended(l *Lease, next provider.Run) {
	l.held = next
	l.renewAt = next.Until.Add(-c.gracePeriod() - c.options.RenewalBuffer)
	l.failing = false
}

// Failed records a failed renewal, which is retried soon. It reports whether this is the first failure.
func (c *Client) Failed(l *Lease, now time.Time) (first bool) {
	l.renewAt = now.Add(c.options.RenewalBuffer / intake.RenewalTries)
	first, l.failing = !l.failing, true
	return first
}

// StopAt returns the time at which an activity is stopped unless its lease is renewed. An activity that was stopped for
// another reason may run until the end of the lease.
func (c *Client) StopAt(l *Lease, stopped bool) time.Time {
	if stopped {
		return l.held.Until
	}
	return l.held.Until.Add(-c.gracePeriod())
}

// gracePeriod returns the time between the stop of an activity and the end of its lease. When the lease ends, and
// another delivery may start, the activity has returned or is abandoned.
func (c *Client) gracePeriod() time.Duration {
	o := c.options
	return min(o.GracePeriod, (o.Timeout-o.RenewalBuffer)/2)
}

// Complete stores the outcome of an activity with its lease before the outcome is sent. A later delivery then sends the
// same outcome and does not run the code. If Complete fails, a WaitForCancellation activity must not send its outcome,
// because another run may have started. The caller then releases the work item. An AtMostOnce activity sends its
// outcome, because no later delivery would have it, unless it also waits for cancellation and has lost its lease.
func (c *Client) Complete(ctx context.Context, t intake.Task, l *Lease, o *provider.ActivityOutcome) (mayBeSent bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), intake.WriteTimeout)
	defer stop()
	err := c.provider.CompleteRun(ctx, l.held, o)
	it, lost := t.WorkItem(), errors.Is(err, provider.ErrLockLost) // another attempt may run
	switch {
	case err == nil:
		return true
	case it.WaitForCancellation && (!it.AtMostOnce || lost):
		t.Log().ErrorContext(ctx, "activity outcome not stored, releasing the work item",
			"event", logevent.ActivityOutcomeNotStored, "error", err)
		return false
	default:
		t.Log().WarnContext(ctx, "at-most-once outcome not stored, sending it anyway",
			"event", logevent.ActivityOutcomeSentUnstored, "error", err)
		return true
	}
}

// Release releases a lease. If the code did not start, Release restores the previous lease. Otherwise, it stores an
// ended lease. If the release fails, the lease expires.
func (c *Client) Release(ctx context.Context, t intake.Task, l *Lease, started, mayStillRun bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), intake.WriteTimeout)
	defer stop()
	remaining := l.previous
	if started {
		ended := l.held
		ended.Until, ended.Abandoned = c.options.Clock(), mayStillRun
		remaining = &ended
	}
	if err := c.provider.ReleaseRun(ctx, l.held, remaining); err != nil {
		t.Log().WarnContext(ctx, "activity claim release failed, the next delivery waits until it expires",
			"event", logevent.ActivityClaimReleaseFailed, "error", err)
	}
}
