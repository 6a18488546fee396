package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// The reasons of what the engine cancels by itself. They are part of the format of histories.
const (
	reasonRequested       = "requested"
	reasonTimeout         = "timeout"
	reasonParentCancelled = "parent_cancelled"
)

// Cancellation is the reason why a scope was cancelled. All tasks and scopes that are cancelled with the scope share
// one Cancellation.
type Cancellation struct {
	history.Failure
	// Err belongs to the caller, which stores here the one error that it makes from the Cancellation.
	Err error
}

func newCancellation(reason, message string) *Cancellation {
	return &Cancellation{Failure: history.Failure{Type: history.TypeCancelled, Message: history.TruncateCancelMessage(message), Reason: reason}}
}

// scope is what one cancel ends: the tasks that were made in it, the waits that go through it, and the scopes under it.
type scope struct {
	cancelled *Cancellation // nil while it lives
	members   *members      // nil while it has none
	parent    *scope        // nil for the root, and for shield
	ends      *ends         // nil while it has none; those of shield are the execution's
}

// members are what a scope would have to end. The tasks and the waits of the root scope are found in the execution: code that uses no scopes
// pays nothing for them.
type members struct {
	under   []*scope // in the order in which they were made
	tasks   []*Task
	waiting map[*coroutine]struct{}
}

// shield is the scope that no cancel reaches. It keeps nothing, so that one is enough for all executions.
var shield = &scope{}

// derived reports whether a scope has a cancel of its own, so that it lists its members.
func (s *scope) derived() bool { return s.parent != nil }

// shielded reports whether the cancel of the instance does not reach a scope.
func (s *scope) shielded() bool {
	for s != nil && s != shield {
		s = s.parent
	}
	return s != nil
}

// makeMembers returns the scope's members.
func (s *scope) makeMembers() *members {
	if s.members == nil {
		s.members = &members{}
	}
	return s.members
}

// derive makes a scope under another.
func (s *scope) derive() *scope {
	d := &scope{parent: s, cancelled: s.cancelled}
	if s == shield || s.cancelled != nil {
		return d
	}

	m := s.makeMembers() // code that makes scopes without end keeps those that live
	m.under = append(roomy(m.under, func(u *scope) bool { return u.cancelled != nil }), d)
	return d
}

// adopt makes a task the scope's.
func (s *scope) adopt(t *Task) {
	t.scope = s
	if !s.derived() {
		return
	}

	m := s.makeMembers()
	m.tasks = append(roomy(m.tasks, func(t *Task) bool { return !t.outstanding() }), t)
}

// roomy makes room for one more in a list, by leaving out what is gone. Where that is little the list grows: looking through all of it costs no
// more than the additions that led to it, however long the part that stays.
func roomy[T any](list []T, gone func(T) bool) []T {
	if len(list) < cap(list) {
		return list
	}
	list = slices.DeleteFunc(list, gone)
	return slices.Grow(list, len(list)/4+1)
}

// enlist has a coroutine woken when the scope is cancelled.
func (s *scope) enlist(c *coroutine) {
	if !s.derived() {
		return
	}
	m := s.makeMembers()
	if m.waiting == nil {
		m.waiting = map[*coroutine]struct{}{}
	}
	m.waiting[c] = struct{}{}
}

// dismiss takes back enlist.
func (s *scope) dismiss(c *coroutine) {
	if s.members != nil {
		delete(s.members.waiting, c)
	}
}

// end cancels the scope alone, and returns the members that it had.
func (s *scope) end(with *Cancellation) *members {
	had := s.members
	s.cancelled = with
	s.members = nil
	return had
}

// live appends the scope, and those under it that are not cancelled.
func (s *scope) live(scopes []*scope) []*scope {
	scopes = append(scopes, s)
	if s.members == nil {
		return scopes
	}
	for _, u := range s.members.under {
		if u.cancelled == nil {
			scopes = u.live(scopes)
		}
	}
	return scopes
}

// outstanding appends the tasks that are outstanding, external events to a list of their own: nothing outside knows of those.
func (m *members) outstanding(tasks, events []*Task) (outside, own []*Task) {
	for _, t := range m.tasks {
		switch {
		case !t.outstanding():
		case t.kind == history.ExternalEventSubscribed:
			events = append(events, t)
		default:
			tasks = append(tasks, t)
		}
	}
	return tasks, events
}

// WithCancel returns a context with a new scope below the scope of c. End cancels the new scope.
func (c *Context) WithCancel() *Context {
	c.x.scheduler.enter()
	return c.in(c.scope.derive())
}

// WithTimeout is like WithCancel, with a timer that cancels the scope after d. The timer belongs to the scope. If d is
// not positive, the scope is cancelled already, and there is no timer.
func (c *Context) WithTimeout(d time.Duration) *Context { return WithNamedTimeout(c, d, "") }

// WithNamedTimeout is like Context.WithTimeout, with a name for the timer.
func WithNamedTimeout(c *Context, d time.Duration, name string) *Context {
	c = c.WithCancel()
	switch {
	case c.scope.cancelled != nil: // with the one above
	case d <= 0:
		c.scope.end(newCancellation(reasonTimeout, ""))
	default:
		CreateNamedTimer(c, d, name).expires = true
	}
	return c
}

// WithoutCancel returns a context with a scope that is never cancelled.
func (c *Context) WithoutCancel() *Context { return c.in(shield) }

// Cancellation returns why the context's scope was cancelled, or nil if it is not cancelled.
func (c *Context) Cancellation() *Cancellation { return c.scope.cancelled }

// SameExecution reports whether two contexts belong to the same execution.
func (c *Context) SameExecution(o *Context) bool { return c.x == o.x }

// End cancels the scope of a context that WithCancel or WithTimeout returned. It does nothing if the scope is cancelled
// already.
func (c *Context) End(reason string) {
	c.x.scheduler.enter()
	if c.scope.cancelled != nil {
		return
	}

	with := newCancellation(reason, "")
	how := cancel{failure: &with.Failure, children: reason, by: history.RequestedByOrchestration}
	if err := c.x.scopes.cancelScope(c.scope, with, how); err != nil {
		c.x.scheduler.fail(err)
	}
}

func byID(a, b *Task) int { return cmp.Compare(a.id, b.id) }

// byKind is the order in which a mass cancel is decided: an event for the activities, one for the timers, and one for each child.
func byKind(a, b *Task) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), byID(a, b)) }

func rank(t *Task) int {
	switch t.kind {
	case history.ActivityScheduled:
		return 0
	case history.TimerCreated:
		return 1
	default:
		return 2
	}
}
