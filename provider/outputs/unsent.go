package outputs

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Unsent returns a function that reports whether an event of the turn sends nothing at the commit. Such events are
// inline activities that ended or were cancelled in this turn, and activities that the process runs (Turn.Running).
// Unsent returns nil if the turn has no such events. A redispatch ignores this function and sends all outputs that the
// history has not settled (R20).
func Unsent(t *provider.Turn) func(eventID int64) bool {
	var ids map[int64]bool
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == history.ActivityScheduled && e.Inline {
			if ids == nil {
				ids = map[int64]bool{}
			}
			ids[e.ID] = t.Running[e.ID]
		}
	}
	if ids == nil {
		return nil
	}
	for i := range t.Events {
		for _, id := range t.Events[i].Settles() {
			if _, inline := ids[id]; inline {
				ids[id] = true
			}
		}
	}
	return func(eventID int64) bool { return ids[eventID] }
}
