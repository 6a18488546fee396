package replay

import (
	"cmp"
	"maps"
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

// Cancellation is why a scope has ended: one for all that are told of it.
type Cancellation struct {
	history.Failure
	// Err is the caller's: the one error that it makes of this.
	Err error
}

func newCancellation(reason, message string) *Cancellation {
	return &Cancellation{Failure: history.Failure{Type: history.TypeCancelled, Message: history.CutCancelMessage(message), Reason: reason}}
}

// scope is what one cancel ends: the tasks that were made in it and the waits that go through it, and the scopes under it.
type scope struct {
	cancelled *Cancellation // nil while it lives
	members   *members      // nil while it has none
	parent    *scope        // nil of those that are not derived
	ends      *ends         // nil while it has none; that of shield is the execution's
}

// derived reports whether a scope has a cancel of its own, so that it lists its members.
func (s *scope) derived() bool { return s.parent != nil }

// shielded reports whether the cancel of the instance does not reach a scope.
func (s *scope) shielded() bool { return s.within(shield) }

// members are what a scope would have to end. The tasks and the waits of the root scope are found in the execution: code that knows
// nothing of scopes pays nothing for them.
type members struct {
	under   []*scope // in the order in which they were made
	tasks   []*Task
	waiting map[*coroutine]struct{}
}

// shield is the scope that no cancel reaches. It keeps nothing, so that one is enough for all.
var shield = &scope{}

func (s *scope) has() *members {
	if s.members == nil {
		s.members = &members{}
	}
	return s.members
}

// WithCancel is a context of a new scope under this one's, which End ends.
func (c *Context) WithCancel() *Context {
	c.x.enter()
	return &Context{x: c.x, scope: c.scope.derive()}
}

// WithTimeout is WithCancel, and a timer ends the scope d from now. The timer belongs to the scope. Without time left the scope is
// over from the start, and there is no timer.
func (c *Context) WithTimeout(d time.Duration) *Context {
	c = c.WithCancel()
	switch {
	case c.scope.cancelled != nil: // with the one above
	case d <= 0:
		c.scope.cancelled = newCancellation(reasonTimeout, "")
	default:
		c.CreateTimer(d).expires = true
	}
	return c
}

// WithoutCancel is a context of the scope that nothing cancels.
func (c *Context) WithoutCancel() *Context { return &Context{x: c.x, scope: shield} }

// Cancellation is why the context's scope is over; nil while it lives.
func (c *Context) Cancellation() *Cancellation { return c.scope.cancelled }

// SameExecution reports whether two contexts are of one execution.
func (c *Context) SameExecution(o *Context) bool { return c.x == o.x }

// End decides to cancel the scope of a context that WithCancel or WithTimeout has made, if that has not been done.
func (c *Context) End(reason string) {
	c.x.enter()
	if c.scope.cancelled != nil {
		return
	}
	f := newCancellation(reason, "")
	if err := c.x.cancelScope(c.scope, f, cancel{f: &f.Failure, children: reason, by: history.RequestedByBody}); err != nil {
		c.x.fail(err)
	}
}

// derive makes a scope under another.
func (s *scope) derive() *scope {
	d := &scope{parent: s, cancelled: s.cancelled}
	if s != shield && s.cancelled == nil {
		m := s.has()
		if len(m.under) == cap(m.under) { // code that makes scopes for ever keeps but those that live
			m.under = slices.DeleteFunc(m.under, func(u *scope) bool { return u.cancelled != nil })
		}
		m.under = append(m.under, d)
	}
	return d
}

// adopt makes a task the scope's.
func (s *scope) adopt(t *Task) {
	t.scope = s
	if !s.derived() {
		return
	}
	m := s.has()
	if len(m.tasks) == cap(m.tasks) {
		m.tasks = slices.DeleteFunc(m.tasks, func(t *Task) bool { return !t.outstanding() })
	}
	m.tasks = append(m.tasks, t)
}

// enlist has a coroutine woken when the scope ends.
func (s *scope) enlist(c *coroutine) {
	if !s.derived() {
		return
	}
	m := s.has()
	if m.waiting == nil {
		m.waiting = map[*coroutine]struct{}{}
	}
	m.waiting[c] = struct{}{}
}

func (s *scope) dismiss(c *coroutine) {
	if s.members != nil {
		delete(s.members.waiting, c)
	}
}

// live adds a scope and those under it that are not over.
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

// cancelScope ends a scope and those under it. What is outstanding in them settles first, then those who wait through them are
// woken, in the order in which they were started.
func (x *execution) cancelScope(s *scope, c *Cancellation, how cancel) error {
	scopes := s.live(nil)
	var tasks, events []*Task
	var waiting []*coroutine
	if s == &x.root {
		tasks, events, waiting = x.scheduled(false), x.mail.waits(), x.coroutines
	}
	for _, e := range scopes {
		e.cancelled = c
		if e.members == nil {
			continue
		}
		if s != &x.root {
			tasks, events = e.members.outstanding(tasks, events)
			waiting = slices.AppendSeq(waiting, maps.Keys(e.members.waiting))
		}
		e.members = nil
	}
	slices.SortFunc(tasks, byKind)
	slices.SortFunc(events, byID)
	err := x.giveUpAll(tasks, how)
	x.giveUpEvents(events, how.f)
	if s != &x.root {
		slices.SortFunc(waiting, func(a, b *coroutine) int { return cmp.Compare(a.number, b.number) })
	}
	for _, w := range waiting {
		if w.awaits != nil { // whoever waits through another scope goes on to wait
			x.wake(w)
		}
	}
	return err
}

// outstanding adds the tasks that are: external events apart, of which nobody outside has heard.
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

// scheduled are the tasks outside that are outstanding and not cancelled, without or with those that the cancel of the instance does not reach.
func (x *execution) scheduled(shielded bool) []*Task {
	var tasks []*Task
	for _, t := range x.tasks {
		if !t.done && !t.cancelled && (shielded || !t.scope.shielded()) {
			tasks = append(tasks, t)
		}
	}
	return tasks
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
