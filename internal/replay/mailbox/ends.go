package mailbox

import (
	"time"

	"github.com/perdure/perdure/internal/replay/tasks"
)

// WaitEnd is the end of a wait for an external event. No event of the history records this end: ExternalEventRaised
// does not name the receiving wait, and the code can abandon a wait without an event.
type WaitEnd struct {
	// ID is the ID of the event that started the wait. Name is the name of the external event.
	ID   int64
	Name string
	// At is the time of the turn in which the wait ended.
	At time.Time
	// Reason is the reason for which the wait was abandoned. It is empty if the event arrived.
	Reason string
}

// ends are the ends of waits in the running turn or replay. A nil ends records nothing.
type ends struct {
	all   []WaitEnd
	place map[int64]int // the index in all, by ID
}

// received records that a wait has received its event.
func (e *ends) received(t *tasks.Task) {
	if e == nil {
		return
	}
	e.place[t.ID()] = len(e.all)
	e.all = append(e.all, WaitEnd{ID: t.ID(), Name: t.Name()})
}

// cancelled records that a wait was cancelled. had is true if the wait had received its event, which returns to the
// mailbox. If that was in an earlier turn, the wait ended in that turn.
func (e *ends) cancelled(t *tasks.Task, reason string, had bool) {
	if e == nil {
		return
	}
	if at, now := e.place[t.ID()]; now {
		e.all[at].Reason = reason
		return
	}
	if !had {
		e.place[t.ID()] = len(e.all)
		e.all = append(e.all, WaitEnd{ID: t.ID(), Name: t.Name(), Reason: reason})
	}
}

// endTurn returns the ends of the turn and resets them.
func (e *ends) endTurn(now time.Time) []WaitEnd {
	if e == nil {
		return nil
	}
	all := e.all
	for i := range all {
		all[i].At = now
	}
	e.all = nil
	clear(e.place)
	return all
}
