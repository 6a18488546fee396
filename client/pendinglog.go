package client

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// pendingLog finds what is open in a history that is given to it event by event. It keeps little of what is open, and nothing of the
// rest.
type pendingLog struct {
	open       map[int64]*openItem
	activities int // that were scheduled
	last       int64

	waits  map[string][]int64 // for external events, by name, the oldest first
	mail   map[string]int     // external events that nobody has waited for, by name
	parked []parkedInput      // what no turn has taken

	// failed is a sub-orchestration that has failed and is tried again: the next event says when, or starts it.
	failed *openChild
}

// openItem is something that is open. Most of what there can be many of are activities: they have no more than these.
type openItem struct {
	what        PendingKind
	name, queue string
	since       time.Time
	due         *time.Time // of a timer
	child       *openChild
	waits       bool // for its end, when it is cancelled
	cancelled   *openCancel
}

// openCancel is why and when something was cancelled that has not ended.
type openCancel struct {
	reason string
	at     time.Time
}

// openChild is a sub-orchestration, and the attempt before the one that it is at.
type openChild struct {
	name, instanceID string
	attempt          int
	retry            *history.RetryPolicy
	err              *history.Failure
	failedAt         time.Time
	nextTry          time.Time
}

// parkedInput is what counts of an input that was parked.
type parkedInput struct {
	event   string // the name of an external event
	settles []int64
}

func newPendingLog() *pendingLog {
	return &pendingLog{open: map[int64]*openItem{}, waits: map[string][]int64{}, mail: map[string]int{}}
}

func (l *pendingLog) add(e *history.Event) {
	failed := l.failed
	l.failed, l.last = nil, e.ID
	switch e.Kind {
	case history.OrchestrationStarted:
		for i := range e.CarriedEvents {
			l.mail[e.CarriedEvents[i].Name]++
		}
		l.park(e.Inputs)
	case history.InputsParked:
		l.park(e.Inputs)
	case history.TurnStarted: // takes what was parked: it comes again as events of the turn
		n := len(l.parked)
		if e.Parked > 0 {
			n = min(int(e.Parked), n)
		}
		l.parked = l.parked[n:]
	case history.ActivityScheduled:
		l.activities++
		l.open[e.ID] = &openItem{what: PendingActivity, name: e.Name, queue: e.Queue, since: e.Time, waits: e.Waits()}
	case history.TimerCreated:
		l.timer(e, failed)
	case history.SubOrchestrationScheduled:
		l.child(e, failed)
	case history.ExternalEventSubscribed:
		l.wait(e)
	case history.ExternalEventRaised:
		l.raised(e.Name)
	default:
		l.settle(e)
	}
}

// timer is the body's, or that of the engine which waits to try a sub-orchestration again.
func (l *pendingLog) timer(e *history.Event, failed *openChild) {
	l.open[e.ID] = &openItem{what: PendingTimer, since: e.Time, due: e.FireAt}
	if failed == nil || e.FireAt == nil {
		return
	}
	failed.nextTry = *e.FireAt
	l.open[e.ID] = &openItem{what: PendingSubOrchestration, name: failed.name, since: e.Time, child: failed}
}

func (l *pendingLog) child(e *history.Event, failed *openChild) {
	c := &openChild{name: e.Name, instanceID: e.InstanceID, attempt: e.Attempt, retry: e.Retry}
	if failed != nil && failed.name == e.Name && failed.attempt == e.Attempt {
		c.err, c.failedAt, c.nextTry = failed.err, failed.failedAt, failed.nextTry
	}
	l.open[e.ID] = &openItem{what: PendingSubOrchestration, name: e.Name, since: e.Time, child: c, waits: e.Waits()}
}

func (l *pendingLog) wait(e *history.Event) {
	if l.mail[e.Name] > 0 {
		l.mail[e.Name]--
		return
	}
	l.waits[e.Name] = append(l.waits[e.Name], e.ID)
	l.open[e.ID] = &openItem{what: PendingExternalEvent, name: e.Name, since: e.Time}
}

func (l *pendingLog) raised(name string) {
	waiting := l.waits[name]
	if len(waiting) == 0 {
		l.mail[name]++
		return
	}
	delete(l.open, waiting[0])
	l.waits[name] = waiting[1:]
}

// settle takes what an event ends out of what is open. A sub-orchestration that has failed may be tried again.
func (l *pendingLog) settle(e *history.Event) {
	if e.Kind.Terminal() {
		clear(l.open)
		return
	}
	for _, id := range e.Settles() {
		o := l.open[id]
		if o != nil && o.waits && requestsCancel(e.Kind) {
			o.cancelled = &openCancel{reason: e.Reason, at: e.Time}
			continue
		}
		delete(l.open, id)
		if o == nil || o.child == nil || o.cancelled != nil {
			continue
		}
		switch e.Kind {
		case history.TimerFired:
			l.failed = o.child // the event that follows starts it again
		case history.SubOrchestrationFailed:
			if _, again := perdure.NextRetry(o.child.retry, "", id, o.child.attempt, e.Error); again {
				l.failed = &openChild{
					name: o.child.name, instanceID: o.child.instanceID, attempt: o.child.attempt + 1, retry: o.child.retry,
					err: cut(e.Error, lastErrorCauses), failedAt: e.Time,
				}
			}
		default:
		}
	}
}

func requestsCancel(k history.Kind) bool {
	return k == history.ActivityCancelRequested || k == history.SubOrchestrationCancelRequested
}

func (l *pendingLog) park(inputs []history.Event) {
	for i := range inputs {
		in := &inputs[i]
		switch in.Kind {
		case history.ExternalEventRaised:
			l.parked = append(l.parked, parkedInput{event: in.Name})
		case history.ActivityCancelRequested:
			l.parked = append(l.parked, parkedInput{}) // no turn has come to this: nobody was told
		default:
			l.parked = append(l.parked, parkedInput{settles: slices.Clone(in.Settles())})
		}
	}
}

// takeParked counts what has arrived and no turn has taken: it is not waited for.
func (l *pendingLog) takeParked() {
	for _, in := range l.parked {
		if in.event != "" {
			l.raised(in.event)
		}
		for _, id := range in.settles {
			delete(l.open, id)
		}
	}
}

// item is what is shown of something open.
func (o *openItem) item(id int64, failed retries) PendingItem {
	p := PendingItem{What: o.what, ID: id, Name: o.name, Queue: o.queue, Since: o.since.UTC()}
	if o.due != nil {
		p.DueAt = o.due.UTC()
	}
	if c := o.cancelled; c != nil {
		p.CancelReason, p.CancelledAt = c.reason, c.at.UTC()
	}
	if c := o.child; c != nil {
		p.ChildID, p.Attempt, p.LastError, p.FailedAt, p.NextTryAt = c.instanceID, c.attempt, c.err, c.failedAt, c.nextTry
	}
	if o.what != PendingActivity {
		return p
	}
	r, retried := failed.of[id]
	switch {
	case retried:
		p.Attempt, p.LastError, p.FailedAt, p.NextTryAt = r.Attempt, cut(r.Error, lastErrorCauses), r.FailedAt, r.At
	case id <= failed.known:
		p.Attempt = 1
	}
	return p
}
