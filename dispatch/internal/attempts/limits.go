package attempts

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// limits are the time limits of a pending attempt.
type limits struct {
	p *provider.PendingAttempt
	// cancel is the cancel of an activity whose end is awaited.
	cancel provider.CancelInfo
}

// limitsOf returns the limits of an attempt. The grace period of a cancelled one starts with the decision.
func (u *pendingUpdates) limitsOf(
	ctx context.Context, activityID int64, p *provider.PendingAttempt, ending bool,
) (limits, error) {
	l := limits{p: p}
	if !ending {
		return l, nil
	}
	cancels, _, err := u.Provider.ReadCancels(ctx, u.x.Head().ExecutionID, p.Segment)
	if err == nil {
		l.cancel = cancels.Of(activityID)
	}
	return l, err
}

// limit is the kind of a limit.
type limit int

const (
	limitNone limit = iota
	limitClose
	limitHeartbeat
	limitGrace
)

// nearest returns the limit that expires first, given the time of the last heartbeat. The time is zero if there is no
// limit.
func (l *limits) nearest(heartbeat time.Time) (at time.Time, kind limit) {
	consider := func(t time.Time, k limit) {
		if at.IsZero() || t.Before(at) {
			at, kind = t, k
		}
	}
	if l.p.StartToCloseDeadline != nil {
		consider(*l.p.StartToCloseDeadline, limitClose)
	}
	if l.p.HeartbeatMs > 0 {
		consider(heartbeat.Add(time.Duration(l.p.HeartbeatMs)*time.Millisecond), limitHeartbeat)
	}
	if l.cancel.Requested {
		consider(l.cancel.RequestedAt.Add(time.Duration(l.p.GraceMs)*time.Millisecond), limitGrace)
	}
	return at.UTC().Truncate(time.Millisecond), kind
}

func (l *limits) outcome(kind limit, record *provider.ActivityRecord) (o provider.ActivityOutcome) {
	switch kind {
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

// lastHeartbeat returns the time of the last known heartbeat of a pending attempt, from its worker or its token holder.
func lastHeartbeat(p *provider.PendingAttempt) time.Time {
	if p.LastHeartbeatAt != nil {
		return *p.LastHeartbeatAt
	}
	return p.Since
}

// withHeartbeat returns a pending attempt with the last heartbeat of its token holder. The time of that heartbeat is by
// the holder's clock, which can be wrong. A new heartbeat with a time before the previous one, or in the future, counts
// once as a heartbeat at the current time.
func withHeartbeat(
	attempt int, p *provider.PendingAttempt, record *provider.ActivityRecord, now time.Time,
) provider.PendingAttempt {
	seen, last := *p, record.LastHeartbeatAt
	if record.HeartbeatAttempt != attempt || p.HeartbeatSeenAt != nil && p.HeartbeatSeenAt.Equal(last) {
		return seen
	}
	seen.HeartbeatSeenAt = &last
	counts := last
	if last.After(now) || last.Before(lastHeartbeat(p)) {
		counts = now
	}
	seen.LastHeartbeatAt = &counts
	return seen
}
