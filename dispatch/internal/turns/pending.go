package turns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// An attempt that is pending is completed from outside, and no worker keeps its time. The session does, beside retries and without code:
// it keeps the attempt in the activity's retry item, under the fence of the head, with the message by which it did so, and holds a timer for
// the nearest limit. When that fires the session looks at the activity's record: a heartbeat since puts the next look off; else the attempt
// has ended, and the policy decides. One message moves an attempt on: any other that comes at the same time finds that done, and the same,
// delivered again, sends the timer again.

// look is a message by which a pending attempt is kept, or looked at.
type look struct {
	message *provider.InboxMessage
	of      source
	// ending: the activity is cancelled, and its end is waited for.
	ending bool
}

// by names the message, also where it is delivered again or picked up from the dead letters.
func (l *look) by() string { return l.message.Redrive.Of(l.message.Record).ID }

// handover is an attempt that a worker hands over.
type handover struct {
	look

	outcome *provider.ActivityOutcome
}

// timekeeping is what one session comes to about pending attempts.
type timekeeping struct {
	s      *session
	keeps  []provider.PendingAttemptUpdate
	keptBy []source
	over   attempts // whose limits are over
}

// keepTime deals with the attempts that messages hand over, and with those that wait and are to be looked at.
func keepTime(ctx context.Context, s *session, a *attempts, waiting []provider.ActivityRetry) error {
	k := timekeeping{s: s}
	for i := range a.pending {
		if err := k.take(ctx, &a.pending[i]); err != nil {
			return err
		}
	}
	for i := range waiting {
		if waiting[i].Pending == nil {
			continue
		}
		if err := k.look(ctx, &a.looks[i], &waiting[i]); err != nil {
			return err
		}
	}
	return k.settle(ctx)
}

// settle stores and sends what was decided.
func (k *timekeeping) settle(ctx context.Context) error {
	s := k.s
	if len(k.keeps) > 0 {
		if err := s.o.provider.PutPendingAttempts(ctx, s.item.InstanceID, s.x.head, k.keeps...); err != nil {
			return err
		}
		for i, of := range k.keptBy {
			s.attempts.deal(of)
			if !k.keeps[i].Sent {
				s.x.markVerified()
			}
		}
	}
	if len(k.over.failed) == 0 {
		return nil
	}
	done, err := s.o.provider.RetryActivities(ctx, &provider.RetryRequest{InstanceID: s.item.InstanceID, Head: s.x.head, Failed: k.over.failed})
	if err != nil {
		return err
	}
	if done.Verified {
		s.x.markVerified()
	}
	s.backlog.refuse(done.RejectedOutputs...)
	s.attempts.judge(&k.over, done)
	return nil
}

// keep has an attempt looked at next at a time; zero is never.
func (k *timekeeping) keep(l *look, was *provider.ActivityRetry, attempt int, p *provider.PendingAttempt, activityID int64, at time.Time) {
	if slices.ContainsFunc(k.keeps, func(o provider.PendingAttemptUpdate) bool { return o.ActivityID == activityID }) {
		k.s.attempts.deal(l.of) // a copy, which came together with it
		return
	}
	k.keeps = append(k.keeps, provider.PendingAttemptUpdate{
		ActivityID: activityID, Attempt: attempt, Was: *was, Pending: *p, NextCheckAt: at, NextCheckID: l.by(), Sent: was.Pending != nil && was.NextCheckID == l.by(),
	})
	k.keptBy = append(k.keptBy, l.of)
}

// take keeps an attempt that a worker hands over, if it is the current one and nobody has.
func (k *timekeeping) take(ctx context.Context, h *handover) error {
	o := h.outcome
	was, err := k.s.o.provider.ReadRetry(ctx, k.s.x.head.ExecutionID, o.ActivityID)
	if err != nil {
		return err
	}
	switch {
	case was.Pending != nil && was.Attempt == o.Attempt && was.NextCheckID == h.by():
		k.keep(&h.look, &was, o.Attempt, was.Pending, o.ActivityID, was.NextCheckAt)
		return nil
	case was.Attempt > o.Attempt, was.Pending != nil && was.Attempt == o.Attempt:
		k.s.attempts.deal(h.of)
		return nil
	}

	limits, err := k.limitsOf(ctx, o.ActivityID, o.Pending, h.ending)
	if err != nil {
		return err
	}
	at, _ := limits.nearest(beatenAt(o.Pending))
	k.keep(&h.look, &was, o.Attempt, o.Pending, o.ActivityID, at)
	return nil
}

// look looks at the limits of a pending attempt.
func (k *timekeeping) look(ctx context.Context, l *look, was *provider.ActivityRetry) error {
	p, id := was.Pending, was.ActivityID
	if was.NextCheckID == l.by() {
		k.keep(l, was, was.Attempt, p, id, was.NextCheckAt)
		return nil
	}
	limits, err := k.limitsOf(ctx, id, p, l.ending)
	if err != nil {
		return err
	}
	now := k.s.o.options.Clock()
	if due := l.message.FireAt; due != nil && due.After(now) {
		now = *due // by the clock of the function that has fired it
	}

	for {
		record, err := k.s.o.provider.ReadActivityRecord(ctx, k.s.x.head.ExecutionID, id)
		if err != nil {
			return err
		}
		seen := withBeat(was.Attempt, p, &record, now)
		at, what := limits.nearest(beatenAt(&seen))
		if at.IsZero() || at.After(now) {
			k.putOff(l, was, &seen, at)
			return nil
		}
		ended, err := k.s.o.provider.TimeOutPending(ctx, k.s.x.head.ExecutionID, id, was.Attempt, record.LastHeartbeatAt)
		if err != nil {
			return err
		}
		if ended {
			k.end(ctx, l, was, limits.endedBy(what, &record))
			return nil
		} // else there was a heartbeat just now
	}
}

// putOff has an attempt looked at later, if this is its timer, or the next look would come too late. Any other message is of before.
func (k *timekeeping) putOff(l *look, was *provider.ActivityRetry, seen *provider.PendingAttempt, at time.Time) {
	due := l.message.FireAt
	isTimer := due != nil && due.Equal(was.NextCheckAt)
	if !at.IsZero() && (isTimer || was.NextCheckAt.IsZero() || at.Before(was.NextCheckAt)) {
		k.keep(l, was, was.Attempt, seen, was.ActivityID, at)
		return
	}
	k.s.attempts.deal(l.of)
}

// end ends an attempt whose time is over, as a failure of it does.
func (k *timekeeping) end(ctx context.Context, l *look, was *provider.ActivityRetry, o provider.ActivityOutcome) {
	p := was.Pending
	o.ActivityID, o.Attempt, o.Segment = was.ActivityID, was.Attempt, p.Segment
	o.Run = provider.TimeoutRunID(was.Attempt, l.by())
	if p.WaitForCancellation {
		o.Ended = history.OutcomeAbandoned // whoever has the token may still be at it
	}
	if !l.ending && p.Retry != nil {
		o.RetryAt = k.nextTry(p, &o)
	}
	k.s.o.options.Logger.InfoContext(ctx, "pending activity timed out", "event", logevent.ActivityPendingTimedOut,
		"instance", k.s.item.InstanceID, "execution", k.s.x.head.ExecutionID, "activity", p.Name,
		"activityId", o.ActivityID, "attempt", o.Attempt, "error", o.Error.Message, "again", o.RetryAt != nil)
	k.s.attempts.end(l.of, &o)
	k.over.failed = append(k.over.failed, o)
	k.over.failedBy = append(k.over.failedBy, l.of)
}

// nextTry is when the policy of an activity tries it again; nil where it does not.
func (k *timekeeping) nextTry(p *provider.PendingAttempt, o *provider.ActivityOutcome) *time.Time {
	delay, again := replay.NextRetry(p.Retry, k.s.x.head.ExecutionID, o.ActivityID, o.Attempt, o.Error)
	at := intake.RetryAt(k.s.o.options.Clock(), delay)
	if !again || p.ScheduleToCloseDeadline != nil && !at.Before(*p.ScheduleToCloseDeadline) {
		return nil
	}
	return &at
}

// limits are those of a pending attempt.
type limits struct {
	p *provider.PendingAttempt
	// cancel is of an activity that is waited for, once it is cancelled.
	cancel provider.CancelInfo
}

// limitsOf are the limits of an attempt. The grace of one that is cancelled counts from the decision.
func (k *timekeeping) limitsOf(ctx context.Context, activityID int64, p *provider.PendingAttempt, ending bool) (limits, error) {
	l := limits{p: p}
	if !ending {
		return l, nil
	}
	cancels, _, err := k.s.o.provider.ReadCancels(ctx, k.s.x.head.ExecutionID, p.Segment)
	if err == nil {
		l.cancel = cancels.Of(activityID)
	}
	return l, err
}

// limit is one of the limits.
type limit int

const (
	limitNone limit = iota
	limitClose
	limitHeartbeat
	limitGrace
)

// nearest is the limit that ends first of an attempt with its last heartbeat at a time; zero where there is none.
func (l *limits) nearest(beaten time.Time) (at time.Time, what limit) {
	consider := func(t time.Time, as limit) {
		if at.IsZero() || t.Before(at) {
			at, what = t, as
		}
	}
	if l.p.StartToCloseDeadline != nil {
		consider(*l.p.StartToCloseDeadline, limitClose)
	}
	if l.p.HeartbeatMs > 0 {
		consider(beaten.Add(time.Duration(l.p.HeartbeatMs)*time.Millisecond), limitHeartbeat)
	}
	if l.cancel.Requested {
		consider(l.cancel.RequestedAt.Add(time.Duration(l.p.GraceMs)*time.Millisecond), limitGrace)
	}
	return at.UTC().Truncate(time.Millisecond), what
}

// endedBy is the outcome of an attempt that a limit has ended.
func (l *limits) endedBy(what limit, record *provider.ActivityRecord) (o provider.ActivityOutcome) {
	switch what {
	case limitGrace:
		o.Error = &history.Failure{Type: history.TypeCancelled, Reason: l.cancel.Reason, Message: l.cancel.Message}
	case limitHeartbeat:
		o.Error = intake.TimedOut(fmt.Sprintf("activity %q: heartbeat timeout of %v expired", l.p.Name,
			time.Duration(l.p.HeartbeatMs)*time.Millisecond))
	default:
		o.Error = intake.TimedOut(fmt.Sprintf("activity %q: start-to-close timeout expired", l.p.Name))
	}
	if !record.SeenAt.IsZero() {
		o.SeenAt = &record.SeenAt
	}
	return o
}

// beatenAt is when the last heartbeat of a pending attempt was, as far as it is known: its worker's, or one that came with its token.
func beatenAt(p *provider.PendingAttempt) time.Time {
	if p.LastHeartbeatAt != nil {
		return *p.LastHeartbeatAt
	}
	return p.Since
}

// withBeat is a pending attempt with the last heartbeat that came with its token. That is by the holder's clock, which may be anything: one
// that the last look has not seen, and that is by its time from before the one before it, or still to come, counts as of now. It does so once.
func withBeat(attempt int, p *provider.PendingAttempt, record *provider.ActivityRecord, now time.Time) provider.PendingAttempt {
	seen, beat := *p, record.LastHeartbeatAt
	if record.HeartbeatAttempt != attempt || p.HeartbeatSeenAt != nil && p.HeartbeatSeenAt.Equal(beat) {
		return seen
	}
	seen.HeartbeatSeenAt = &beat
	counts := beat
	if beat.After(now) || beat.Before(beatenAt(p)) {
		counts = now
	}
	seen.LastHeartbeatAt = &counts
	return seen
}
