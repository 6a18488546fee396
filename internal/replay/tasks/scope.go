package tasks

import (
	"cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
)

// Cancellation is the reason for which a scope was cancelled. All tasks and scopes that are cancelled with the scope
// share one Cancellation.
type Cancellation struct {
	history.Failure
	// Err is for the caller, which stores the error that it creates from the Cancellation.
	Err error
}

// NewCancellation returns a cancellation.
func NewCancellation(reason, message string) *Cancellation {
	return &Cancellation{Failure: history.Failure{
		Type: history.TypeCancelled, Message: history.TruncateCancelMessage(message), Reason: reason,
	}}
}

// Scope is a set of tasks, waits and other scopes that can be cancelled together.
type Scope struct {
	cancelled *Cancellation // nil until the scope is cancelled
	members   *members      // nil if there are none
	parent    *Scope        // nil for the root and the shield
	ends      *ends         // nil if there are none; a Set has those of the shield
}

// members are the tasks, waits and scopes of a scope. The root scope does not list its members, which are all tasks and
// coroutines of the execution. Code without other scopes therefore needs no lists.
type members struct {
	scopes  []*Scope // in the order of creation
	tasks   []*Task
	waiting map[*Coroutine]struct{}
}

// shield is the scope that is never cancelled. It has no members, so all executions share it.
var shield = &Scope{}

// Shield returns the scope that is never cancelled.
func Shield() *Scope { return shield }

// Cancellation returns the cancellation of the scope, or nil.
func (s *Scope) Cancellation() *Cancellation { return s.cancelled }

// listsMembers reports whether the scope can be cancelled by itself.
func (s *Scope) listsMembers() bool { return s.parent != nil }

// isShielded reports whether the cancellation of the instance does not reach the scope.
func (s *Scope) isShielded() bool {
	for s != nil && s != shield {
		s = s.parent
	}
	return s != nil
}

func (s *Scope) makeMembers() *members {
	if s.members == nil {
		s.members = &members{}
	}
	return s.members
}

// Derive creates a scope below this one.
func (s *Scope) Derive() *Scope {
	d := &Scope{parent: s, cancelled: s.cancelled}
	if s == shield || s.cancelled != nil {
		return d
	}

	m := s.makeMembers() // code may create scopes forever: CompactOrGrow drops the cancelled ones
	m.scopes = append(coroutine.CompactOrGrow(m.scopes, func(u *Scope) bool { return u.cancelled != nil }), d)
	return d
}

func (s *Scope) adopt(t *Task) {
	t.scope = s
	if !s.listsMembers() {
		return
	}

	m := s.makeMembers()
	m.tasks = append(coroutine.CompactOrGrow(m.tasks, func(t *Task) bool { return !t.IsOutstanding() }), t)
}

// addWaiter makes a coroutine wake when the scope is cancelled.
func (s *Scope) addWaiter(c *Coroutine) {
	if !s.listsMembers() {
		return
	}
	m := s.makeMembers()
	if m.waiting == nil {
		m.waiting = map[*Coroutine]struct{}{}
	}
	m.waiting[c] = struct{}{}
}

// removeWaiter reverts addWaiter.
func (s *Scope) removeWaiter(c *Coroutine) {
	if s.members != nil {
		delete(s.members.waiting, c)
	}
}

// Expire cancels a new scope whose timeout is not positive. It has no members.
func (s *Scope) Expire() { s.end(NewCancellation(ReasonTimeout, "")) }

// end cancels the scope without its members, and returns the members.
func (s *Scope) end(with *Cancellation) *members {
	had := s.members
	s.cancelled = with
	s.members = nil
	return had
}

// live appends the scope and the scopes below it that are not cancelled.
func (s *Scope) live(scopes []*Scope) []*Scope {
	scopes = append(scopes, s)
	if s.members == nil {
		return scopes
	}
	for _, u := range s.members.scopes {
		if u.cancelled == nil {
			scopes = u.live(scopes)
		}
	}
	return scopes
}

// outstanding appends the outstanding tasks. Waits for external events have their own list, because the history does
// not record their cancellation.
func (m *members) outstanding(tasks, events []*Task) (recorded, unrecorded []*Task) {
	for _, t := range m.tasks {
		switch {
		case !t.IsOutstanding():
		case t.kind == history.ExternalEventSubscribed:
			events = append(events, t)
		default:
			tasks = append(tasks, t)
		}
	}
	return tasks, events
}

func byID(a, b *Task) int { return cmp.Compare(a.id, b.id) }

// byKind is the order in which many tasks are cancelled. The activities share one event, the timers share another, and
// each child has its own.
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
