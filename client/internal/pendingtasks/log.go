package pendingtasks

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
)

// Limits of Item.LastError. A response contains up to a thousand of these errors.
const (
	lastErrorBytes  = 1 << 10
	lastErrorCauses = 1
)

// log finds the open items of a history that it receives event by event. It stores a few fields of each open item, and
// nothing for ended items.
type log struct {
	state      *history.State
	details    map[int64]*openItem
	activities int // number of scheduled activities

	// failedChild is a sub-orchestration that has failed and will be retried. The next event is its retry timer or its
	// next start.
	failedChild *openChild

	// turnBuild is the build of the last turn. blockedAt is the time at which a build first reported after that turn
	// that it cannot process the history.
	turnBuild string
	blockedAt time.Time
}

// openItem has the properties of an open activity, sub-orchestration or retry timer that a history.State does not
// store. Most open items are activities, which have no child and no cancellation.
type openItem struct {
	name, queue string
	maxAttempts int // limit of an activity; 0 means no limit or no retry policy
	child       *openChild
	cancel      *openCancel
}

// openCancel is the cancellation of an item that has not ended.
type openCancel struct {
	reason string
	at     time.Time
}

// openChild is a sub-orchestration with its current attempt and the failure of the previous attempt.
type openChild struct {
	name, instanceID string
	attempt          int
	retry            *history.RetryPolicy
	err              *history.Failure
	failedAt         time.Time
	nextAttempt      time.Time
}

func newLog() *log {
	return &log{state: history.NewState(history.TrackOpen), details: map[int64]*openItem{}}
}

// add processes the next event.
func (l *log) add(e *history.Event) {
	failed := l.failedChild
	l.failedChild = nil
	l.state.Apply(*e)

	switch e.Kind {
	case history.ActivityScheduled:
		l.activities++
		l.details[e.ID] = &openItem{name: e.Name, queue: e.Queue, maxAttempts: maxAttempts(e.Retry)}
	case history.TimerCreated:
		l.addRetryTimer(e, failed)
	case history.SubOrchestrationScheduled:
		l.addChild(e, failed)
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

// maxAttempts returns the limit of attempts in a retry policy. 0 means no limit.
func maxAttempts(policy *history.RetryPolicy) int {
	if policy == nil {
		return 0
	}
	return policy.MaxAttempts
}

// blocked describes a blocked execution. It returns nil if the execution is not blocked.
func (l *log) blocked() *Blocked {
	if !l.state.Blocked.Active {
		return nil
	}
	return &Blocked{
		Since: l.blockedAt, BuildID: l.state.Blocked.LastBuild, LastTurnBuildID: l.turnBuild,
		ParkedInputs: l.state.Parked,
	}
}

// addRetryTimer adds the timer before the next attempt of a sub-orchestration. For timers of the code, the state is
// sufficient.
func (l *log) addRetryTimer(e *history.Event, failed *openChild) {
	if failed == nil || e.FireAt == nil {
		return
	}
	failed.nextAttempt = *e.FireAt
	l.details[e.ID] = &openItem{name: failed.name, child: failed}
}

func (l *log) addChild(e *history.Event, failed *openChild) {
	c := &openChild{name: e.Name, instanceID: e.InstanceID, attempt: e.Attempt, retry: e.Retry}
	if failed != nil && failed.name == e.Name && failed.attempt == e.Attempt {
		c.err = failed.err
		c.failedAt = failed.failedAt
		c.nextAttempt = failed.nextAttempt
	}
	l.details[e.ID] = &openItem{name: e.Name, child: c}
}

// settle applies an event that ends or cancels an item. A sub-orchestration that has failed may be retried.
func (l *log) settle(e *history.Event, id int64) {
	item := l.details[id]
	if item == nil {
		return
	}
	if _, open := l.state.Open(id); open { // cancelled, but not ended
		item.cancel = &openCancel{reason: e.Reason, at: e.Time}
		return
	}
	delete(l.details, id)

	child := item.child
	if child == nil || item.cancel != nil {
		return
	}
	switch e.Kind {
	case history.TimerFired:
		l.failedChild = child // the next event starts the attempt
	case history.SubOrchestrationFailed:
		if _, again := retry.Next(child.retry, "", id, child.attempt, e.Error); again {
			l.failedChild = &openChild{
				name: child.name, instanceID: child.instanceID, attempt: child.attempt + 1, retry: child.retry,
				err: e.Error.Truncate(lastErrorBytes, lastErrorCauses), failedAt: e.Time,
			}
		}
	default:
	}
}

// pending returns the IDs of the pending items.
func (l *log) pending() (ids []int64) {
	for o := range l.state.Pending() {
		ids = append(ids, o.ID)
	}
	return ids
}

// kinds maps the event that schedules an item to the kind of the item.
var kinds = map[history.Kind]Kind{
	history.ActivityScheduled:         Activity,
	history.TimerCreated:              Timer,
	history.SubOrchestrationScheduled: SubOrchestration,
	history.ExternalEventSubscribed:   ExternalEvent,
	history.ExternalEventSent:         SentEvent,
	history.UpdateSent:                SentUpdate,
	history.UpdateAccepted:            ReceivedUpdate,
}

// item returns the pending item with this ID.
func (l *log) item(id int64, failed retries) Item {
	open, _ := l.state.Open(id)
	x := Item{Kind: kinds[open.Kind], ID: id, Name: open.Name, ScheduledAt: open.ScheduledAt.UTC()}
	details := l.details[id]
	if details == nil {
		switch open.Kind { //nolint:exhaustive // the others have no more properties
		case history.TimerCreated:
			x.DueAt = open.FireAt.UTC()
		case history.ExternalEventSent, history.UpdateSent:
			x.InstanceID = open.InstanceID
		case history.UpdateAccepted:
			x.UpdateID = open.EventID
		}
		return x
	}

	x.Name = details.name
	x.Queue = details.queue
	x.MaxAttempts = details.maxAttempts
	if c := details.cancel; c != nil {
		x.CancelReason = c.reason
		x.CancelledAt = c.at.UTC()
	}
	if c := details.child; c != nil {
		x.Kind = SubOrchestration
		x.InstanceID = c.instanceID
		x.Attempt = c.attempt
		x.MaxAttempts = maxAttempts(c.retry)
		x.LastError = c.err
		x.FailedAt = c.failedAt
		x.NextAttemptAt = c.nextAttempt
	}
	if x.Kind == Activity {
		failed.setAttempt(&x)
	}
	return x
}

// hasFailed reports whether an earlier attempt of an item failed.
func (l *log) hasFailed(id int64, failed retries) bool {
	details := l.details[id]
	return failed.byID[id].Attempt > 1 || details != nil && details.child != nil && details.child.err != nil
}
