package provider

import "github.com/perdure/perdure/history"

// Unsent returns which of the turn's events send nothing when it is committed: activities that ran inline, and have ended or were cancelled in
// this very turn, and those that the process runs (Turn.Running). Nil where there are none, as in most turns. A repeated dispatch goes by history
// alone: what is not settled there it sends, whoever ran it (R20).
func (t *Turn) Unsent() func(eventID int64) bool {
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
