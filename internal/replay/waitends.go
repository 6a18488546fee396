package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// WaitEnd is the end of a wait for an external event. No event of the history records this end: ExternalEventRaised
// does not name the receiving wait, and the code can give up a wait without an event.
type WaitEnd struct {
	// ID is the ID of the event that started the wait. Name is the name of the external event.
	ID   int64
	Name string
	// At is the time of the turn in which the wait ended.
	At time.Time
	// Reason says why the wait was given up. It is empty if the event arrived.
	Reason string
}

// waitEnds are those of the turn under way, or of a replay, which nobody asks for. A nil waitEnds notes none.
type waitEnds struct {
	all   []WaitEnd
	place map[int64]int // in all, by ids
}

// came notes that a wait has got its event.
func (w *waitEnds) came(t *Task) {
	if w == nil {
		return
	}
	w.place[t.id] = len(w.all)
	w.all = append(w.all, WaitEnd{ID: t.id, Name: t.name})
}

// gaveUp notes that a wait was given up. had: it had its event, which goes back. Where it got it in an earlier turn, it has ended then.
func (w *waitEnds) gaveUp(t *Task, reason string, had bool) {
	if w == nil {
		return
	}
	if at, now := w.place[t.id]; now {
		w.all[at].Reason = reason
		return
	}
	if !had {
		w.place[t.id] = len(w.all)
		w.all = append(w.all, WaitEnd{ID: t.id, Name: t.name, Reason: reason})
	}
}

// endTurn hands over those of a turn.
func (w *waitEnds) endTurn(now time.Time) []WaitEnd {
	if w == nil {
		return nil
	}
	all := w.all
	for i := range all {
		all[i].At = now
	}
	w.all = nil
	clear(w.place)
	return all
}

// release notes that the waits which are left end with the execution.
func (m *mailbox) release(end history.Kind) {
	if m == nil || m.ends == nil {
		return
	}
	left := slices.Concat(slices.Collect(maps.Values(m.waiting))...)
	slices.SortFunc(left, func(a, b *Task) int { return cmp.Compare(a.id, b.id) })
	for _, t := range left {
		m.ends.gaveUp(t, history.TerminalReason(end), false)
	}
}

// endTurn hands over how waits have ended in the turn.
func (m *mailbox) endTurn(now time.Time) []WaitEnd {
	if m == nil {
		return nil
	}
	return m.ends.endTurn(now)
}
