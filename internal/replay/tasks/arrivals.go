package tasks

import "github.com/perdure/perdure/history"

// Arrivals are the outcomes of inline activities that are in the history, behind the decisions of a turn. The next turn
// starts with them (R20). Until that turn, their tasks are open, but cannot be cancelled. Most executions have none.
type Arrivals struct {
	all   []history.Event // oldest first
	taken int             // the number of outcomes that the code has observed
	open  map[int64]bool  // the tasks of the other outcomes
}

// Add adds an outcome of the history.
func (a *Arrivals) Add(ev *history.Event) {
	if a.open == nil {
		a.open = map[int64]bool{}
	}
	a.open[ev.SourceEventID] = true
	a.all = append(a.all, *ev)
}

// Next takes the oldest outcome.
func (a *Arrivals) Next() *history.Event {
	ev := &a.all[a.taken]
	a.taken++
	delete(a.open, ev.SourceEventID)
	return ev
}

// Count returns the number of outcomes.
func (a *Arrivals) Count() int { return len(a.all) - a.taken }

// keptArrivals is the capacity that EndTurn keeps.
const keptArrivals = 4

// EndTurn drops the outcomes after the code has observed all of them. A chain of inline activities reuses their memory.
func (a *Arrivals) EndTurn() {
	if a.Count() > 0 {
		return
	}
	clear(a.all)
	a.all = a.all[:0]
	a.taken = 0
	if cap(a.all) > keptArrivals {
		a.all = nil
	}
}

// Has reports whether the outcome of a task has arrived.
func (a *Arrivals) Has(id int64) bool { return a.open[id] }
