package client

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// pendingLog finds what is open in a history that is passed to it event by event. It keeps little of what is open, and
// nothing of the rest.
type pendingLog struct {
	state      *history.State
	about      map[int64]*openItem
	activities int // how many were scheduled

	// failed is a sub-orchestration that has failed and is tried again: the next event is its timer or its start.
	failed *openChild

	// turnBuild is the build of the last turn. blockedAt is when a build first reported, after that turn, that it
	// cannot process the history.
	turnBuild string
	blockedAt time.Time
}

// openItem holds what a history.State does not keep of an open activity or sub-orchestration, or of the timer that
// starts one again. Most open items are activities, which have no more than these fields.
type openItem struct {
	name, queue string
	maxAttempts int // of an activity; 0: no limit, or no retry policy
	child       *openChild
	cancelled   *openCancel
}

// openCancel is the reason and the time of the cancel of something that has not ended.
type openCancel struct {
	reason string
	at     time.Time
}

// openChild is a sub-orchestration with its current attempt, and the failure of the attempt before.
type openChild struct {
	name, instanceID string
	attempt          int
	retry            *history.RetryPolicy
	err              *history.Failure
	failedAt         time.Time
	nextTry          time.Time
}

func newPendingLog() *pendingLog {
	return &pendingLog{state: history.NewState(history.TrackOpen), about: map[int64]*openItem{}}
}

func (l *pendingLog) add(e *history.Event) {
	failed := l.failed
	l.failed = nil
	l.state.Apply(*e)

	switch e.Kind {
	case history.ActivityScheduled:
		l.activities++
		l.about[e.ID] = &openItem{name: e.Name, queue: e.Queue, maxAttempts: maxAttempts(e.Retry)}
	case history.TimerCreated:
		l.timer(e, failed)
	case history.SubOrchestrationScheduled:
		l.child(e, failed)
	case history.TurnStarted:
		l.turnBuild = e.BuildID
		l.blockedAt = time.Time{}
	case history.InputsParked:
		if l.state.Blocked.Active && l.blockedAt.IsZero() {
			l.blockedAt = e.Time.UTC()
		}
	default:
		for _, id := range e.Settles() {
			l.settle(e, id)
		}
	}
}

// maxAttempts returns the limit of attempts in a retry policy; 0 means that there is none.
func maxAttempts(policy *history.RetryPolicy) int {
	if policy == nil {
		return 0
	}
	return policy.MaxAttempts
}

// blocked describes a blocked execution. It returns nil if the execution is not blocked.
func (l *pendingLog) blocked() *BlockedState {
	if !l.state.Blocked.Active {
		return nil
	}
	return &BlockedState{
		Since: l.blockedAt, BuildID: l.state.Blocked.LastBuild, LastTurnBuildID: l.turnBuild,
		ParkedInputs: l.state.Parked,
	}
}

// timer adds a timer of the engine that waits to try a sub-orchestration again. One of the body needs no more than the
// state has.
func (l *pendingLog) timer(e *history.Event, failed *openChild) {
	if failed == nil || e.FireAt == nil {
		return
	}
	failed.nextTry = *e.FireAt
	l.about[e.ID] = &openItem{name: failed.name, child: failed}
}

func (l *pendingLog) child(e *history.Event, failed *openChild) {
	c := &openChild{name: e.Name, instanceID: e.InstanceID, attempt: e.Attempt, retry: e.Retry}
	if failed != nil && failed.name == e.Name && failed.attempt == e.Attempt {
		c.err = failed.err
		c.failedAt = failed.failedAt
		c.nextTry = failed.nextTry
	}
	l.about[e.ID] = &openItem{name: e.Name, child: c}
}

// settle applies an event that settles something. A sub-orchestration that has failed may be tried again.
func (l *pendingLog) settle(e *history.Event, id int64) {
	item := l.about[id]
	if item == nil {
		return
	}
	if _, open := l.state.Open(id); open { // it is cancelled, and has not ended
		item.cancelled = &openCancel{reason: e.Reason, at: e.Time}
		return
	}
	delete(l.about, id)

	child := item.child
	if child == nil || item.cancelled != nil {
		return
	}
	switch e.Kind {
	case history.TimerFired:
		l.failed = child // the event that follows starts it again
	case history.SubOrchestrationFailed:
		if _, again := replay.NextRetry(child.retry, "", id, child.attempt, e.Error); again {
			l.failed = &openChild{
				name: child.name, instanceID: child.instanceID, attempt: child.attempt + 1, retry: child.retry,
				err: e.Error.Truncate(lastErrorBytes, lastErrorCauses), failedAt: e.Time,
			}
		}
	default:
	}
}

// pending returns the ids of what is pending.
func (l *pendingLog) pending() (ids []int64) {
	for o := range l.state.Pending() {
		ids = append(ids, o.ID)
	}
	return ids
}

// pendingKinds are the kinds of what is pending, by the event that scheduled it.
var pendingKinds = map[history.Kind]PendingKind{
	history.ActivityScheduled:         PendingActivity,
	history.TimerCreated:              PendingTimer,
	history.SubOrchestrationScheduled: PendingSubOrchestration,
	history.ExternalEventSubscribed:   PendingExternalEvent,
	history.ExternalEventSent:         PendingSentEvent,
	history.UpdateSent:                PendingSentUpdate,
	history.UpdateAccepted:            PendingUpdate,
}

// item returns what is shown of something open.
func (l *pendingLog) item(id int64, failed retries) PendingItem {
	open, _ := l.state.Open(id)
	p := PendingItem{Kind: pendingKinds[open.Kind], ID: id, Name: open.Name, ScheduledAt: open.ScheduledAt.UTC()}
	about := l.about[id]
	if about == nil {
		switch open.Kind { //nolint:exhaustive // the others have no more
		case history.TimerCreated:
			p.DueAt = open.FireAt.UTC()
		case history.ExternalEventSent, history.UpdateSent:
			p.InstanceID = open.InstanceID
		case history.UpdateAccepted:
			p.UpdateID = open.EventID
		}
		return p
	}

	p.Name = about.name
	p.Queue = about.queue
	p.MaxAttempts = about.maxAttempts
	if c := about.cancelled; c != nil {
		p.CancelReason = c.reason
		p.CancelledAt = c.at.UTC()
	}
	if c := about.child; c != nil {
		p.Kind = PendingSubOrchestration
		p.InstanceID = c.instanceID
		p.Attempt = c.attempt
		p.MaxAttempts = maxAttempts(c.retry)
		p.LastError = c.err
		p.FailedAt = c.failedAt
		p.NextAttemptAt = c.nextTry
	}
	if p.Kind == PendingActivity {
		failed.add(&p)
	}
	return p
}

// add sets the current attempt of an activity, where it is known.
func (r retries) add(p *PendingItem) {
	last, retried := r.of[p.ID]
	switch {
	case retried && last.Attempt == 1: // it is pending, and nothing has failed
		p.Attempt = 1
	case retried:
		p.Attempt = last.Attempt
		p.LastError = last.Error.Truncate(lastErrorBytes, lastErrorCauses)
		p.FailedAt = last.FailedAt
		p.NextAttemptAt = last.At
	case p.ID <= r.known:
		p.Attempt = 1
	}
	if last.Pending != nil {
		p.ResultPendingSince = last.Pending.Since.UTC()
		p.NextAttemptAt = time.Time{}
		p.NextTimeoutCheckAt = last.NextCheckAt
	}
}
