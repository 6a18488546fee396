package attempts

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay/retry"
	"github.com/perdure/perdure/provider"
)

// An attempt that is completed asynchronously has no worker that enforces its time limits. The session enforces them,
// without code. It stores the attempt and the message that caused the write in the activity's retry item, on the
// condition that the head is current. It also holds a timer for the nearest limit. When the timer fires, the session
// reads the activity's record. After a heartbeat, it sets the next timer. Otherwise the attempt has ended, and the
// policy decides. If two messages check an attempt at the same time, one of them has no effect. If a message is
// redelivered, its timer is sent again.

// check is a message by which a pending attempt is stored or checked.
type check struct {
	message *provider.InboxMessage
	from    source
	// ending is set if the activity is cancelled and its end is awaited.
	ending bool
}

// messageID returns the ID of the message, which redelivery and recovery do not change.
func (c *check) messageID() string { return c.message.Redrive.Of(c.message.Record).ID }

// pendingAttempt is an attempt that a worker reports as pending.
type pendingAttempt struct {
	check

	outcome *provider.ActivityOutcome
}

// pendingUpdates collects the changes of the pending attempts of a run.
type pendingUpdates struct {
	*run

	stored  []provider.PendingAttemptUpdate
	from    []source
	expired collection // attempts whose time limit has expired
}

// checkPending stores the attempts that are reported as pending, and checks the limits of those that wait.
func (r *run) checkPending(ctx context.Context, c *collection, waiting []provider.ActivityRetry) error {
	u := pendingUpdates{run: r}
	for i := range c.pending {
		if err := u.add(ctx, &c.pending[i]); err != nil {
			return err
		}
	}
	for i := range waiting {
		if waiting[i].Pending == nil {
			continue
		}
		if err := u.check(ctx, &c.checks[i], &waiting[i]); err != nil {
			return err
		}
	}
	return u.write(ctx)
}

// write stores the changes and sends the attempts and timers that follow from them.
func (u *pendingUpdates) write(ctx context.Context) error {
	if len(u.stored) > 0 {
		if err := u.Provider.PutPendingAttempts(ctx, u.instanceID, u.x.Head(), u.stored...); err != nil {
			return err
		}
		for i, from := range u.from {
			u.ledger.setDone(from)
			if !u.stored[i].Sent {
				u.x.MarkVerified()
			}
		}
	}
	if len(u.expired.failed) == 0 {
		return nil
	}
	_, err := u.retry(ctx, &u.expired)
	return err
}

// store stores an attempt with the time of its next check. A zero time means that none is needed.
func (u *pendingUpdates) store(
	c *check, was *provider.ActivityRetry, attempt int, p *provider.PendingAttempt, activityID int64, at time.Time,
) {
	if slices.ContainsFunc(u.stored, func(o provider.PendingAttemptUpdate) bool { return o.ActivityID == activityID }) {
		u.ledger.setDone(c.from) // a copy in the same batch
		return
	}
	u.stored = append(u.stored, provider.PendingAttemptUpdate{
		ActivityID: activityID, Attempt: attempt, Was: *was, Pending: *p, NextCheckAt: at, NextCheckID: c.messageID(),
		Sent: was.Pending != nil && was.NextCheckID == c.messageID(),
	})
	u.from = append(u.from, c.from)
}

// add stores an attempt that is reported as pending, if it is the current one and is not stored.
func (u *pendingUpdates) add(ctx context.Context, a *pendingAttempt) error {
	o := a.outcome
	was, err := u.Provider.ReadRetry(ctx, u.x.Head().ExecutionID, o.ActivityID)
	if err != nil {
		return err
	}
	switch {
	case was.Pending != nil && was.Attempt == o.Attempt && was.NextCheckID == a.messageID():
		u.store(&a.check, &was, o.Attempt, was.Pending, o.ActivityID, was.NextCheckAt)
		return nil
	case was.Attempt > o.Attempt, was.Pending != nil && was.Attempt == o.Attempt:
		u.ledger.setDone(a.from)
		return nil
	}

	limits, err := u.limitsOf(ctx, o.ActivityID, o.Pending, a.ending)
	if err != nil {
		return err
	}
	at, _ := limits.nearest(lastHeartbeat(o.Pending))
	u.store(&a.check, &was, o.Attempt, o.Pending, o.ActivityID, at)
	return nil
}

func (u *pendingUpdates) check(ctx context.Context, c *check, was *provider.ActivityRetry) error {
	p, id := was.Pending, was.ActivityID
	if was.NextCheckID == c.messageID() {
		u.store(c, was, was.Attempt, p, id, was.NextCheckAt)
		return nil
	}
	limits, err := u.limitsOf(ctx, id, p, c.ending)
	if err != nil {
		return err
	}
	now := u.Clock()
	if due := c.message.FireAt; due != nil && due.After(now) {
		now = *due // by the clock of the function that fired the timer
	}

	for {
		record, err := u.Provider.ReadActivityRecord(ctx, u.x.Head().ExecutionID, id)
		if err != nil {
			return err
		}
		seen := withHeartbeat(was.Attempt, p, &record, now)
		at, kind := limits.nearest(lastHeartbeat(&seen))
		if at.IsZero() || at.After(now) {
			u.checkLater(c, was, &seen, at)
			return nil
		}
		ended, err := u.Provider.EndPending(ctx, u.x.Head().ExecutionID, id, was.Attempt, record.LastHeartbeatAt)
		if err != nil {
			return err
		}
		if ended {
			u.end(ctx, c, was, limits.outcome(kind, &record))
			return nil
		} // otherwise there was a heartbeat in the meantime
	}
}

// checkLater sets the time of the next check, if the message is the timer of the attempt, or if the stored check would
// be too late. Any other message is outdated.
func (u *pendingUpdates) checkLater(
	c *check, was *provider.ActivityRetry, seen *provider.PendingAttempt, at time.Time,
) {
	due := c.message.FireAt
	isTimer := due != nil && due.Equal(was.NextCheckAt)
	if !at.IsZero() && (isTimer || was.NextCheckAt.IsZero() || at.Before(was.NextCheckAt)) {
		u.store(c, was, was.Attempt, seen, was.ActivityID, at)
		return
	}
	u.ledger.setDone(c.from)
}

// end ends an attempt whose time limit has expired. The attempt counts as failed.
func (u *pendingUpdates) end(ctx context.Context, c *check, was *provider.ActivityRetry, o provider.ActivityOutcome) {
	p := was.Pending
	o.ActivityID, o.Attempt, o.Segment = was.ActivityID, was.Attempt, p.Segment
	o.Run = provider.TimeoutRunID(was.Attempt, c.messageID())
	if p.WaitForCancellation {
		o.Ended = history.OutcomeAbandoned // the token holder may still work on it
	}
	if !c.ending && p.Retry != nil {
		o.RetryAt = u.retryAt(p, &o)
	}
	u.Logger.InfoContext(ctx, "pending activity timed out", "event", logevent.ActivityPendingTimedOut,
		"instance", u.instanceID, "execution", u.x.Head().ExecutionID, "activity", p.Name,
		"activityId", o.ActivityID, "attempt", o.Attempt, "error", o.Error.Message, "again", o.RetryAt != nil)
	u.ledger.setTimeout(c.from, &o)
	u.expired.failed = append(u.expired.failed, o)
	u.expired.failedFrom = append(u.expired.failedFrom, c.from)
}

// retryAt returns the due time of the next attempt of an activity, or nil if none follows.
func (u *pendingUpdates) retryAt(p *provider.PendingAttempt, o *provider.ActivityOutcome) *time.Time {
	delay, retries := retry.Next(p.Retry, u.x.Head().ExecutionID, o.ActivityID, o.Attempt, o.Error)
	at := intake.RetryAt(u.Clock(), delay)
	if !retries || p.ScheduleToCloseDeadline != nil && !at.Before(*p.ScheduleToCloseDeadline) {
		return nil
	}
	return &at
}
