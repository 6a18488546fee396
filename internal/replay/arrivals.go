package replay

import "github.com/perdure/perdure/history"

// arrivals are the outcomes of activities that ran inline: they are in history, behind the decisions of a turn, and the next turn begins with
// them (R20). Until then their tasks are open, and nothing can cancel them any more. Most executions have none.
type arrivals struct {
	all   []history.Event // the oldest first
	taken int             // how many of all the code has seen
	of    map[int64]bool  // the tasks of those that it has not
}

// add adds an outcome that is in history.
func (a *arrivals) add(ev *history.Event) {
	if a.of == nil {
		a.of = map[int64]bool{}
	}
	a.of[ev.SourceEventID] = true
	a.all = append(a.all, *ev)
}

// next takes the oldest.
func (a *arrivals) next() *history.Event {
	ev := &a.all[a.taken]
	a.taken++
	delete(a.of, ev.SourceEventID)
	return ev
}

// count is how many there are.
func (a *arrivals) count() int { return len(a.all) - a.taken }

// keptArrivals is the capacity that endTurn keeps.
const keptArrivals = 4

// endTurn forgets those that the code has seen, once it has seen all. A chain of inline activities puts the next in their place.
func (a *arrivals) endTurn() {
	if a.count() > 0 {
		return
	}
	clear(a.all)
	a.all = a.all[:0]
	a.taken = 0
	if cap(a.all) > keptArrivals {
		a.all = nil
	}
}

// has reports whether the outcome of a task has arrived.
func (a *arrivals) has(id int64) bool { return a.of[id] }

// arrive takes the outcome of an activity that ran inline, which history has next. The code learns of it in the next turn.
func arrive(x *execution, ev *history.Event) error {
	t, applies := x.concerns(ev)
	if !applies || x.tasks.arrivals.has(t.id) {
		return x.journal.Cursor.Divergence("no task with this outcome")
	}
	x.tasks.arrivals.add(ev)
	return nil
}

// seeArrived has the code go on after each of the first n outcomes that have arrived.
func seeArrived(x *execution, n int) error {
	for range n {
		if x.life.hasEnded() || x.scheduler.stuck() {
			return nil
		}
		ev := x.tasks.arrivals.next()
		if t, applies := x.concerns(ev); applies {
			if err := x.accept(t, ev); err != nil {
				return err
			}
			x.scheduler.run(&x.life)
		}
	}
	return nil
}

// unpark has a turn take what waits for it: outcomes that have arrived, of which it returns how many, and then parked inputs, which it puts before
// the messages. In a turn that takes only some of all these they replace the messages; then alone is how many they are, else 0.
func unpark(x *execution, t *Turn) (arrived, alone int) {
	arrived = x.tasks.arrivals.count()
	if t.MostParked > 0 && arrived > 0 && (arrived >= t.MostParked || x.parking.isEmpty()) {
		arrived = min(arrived, t.MostParked)
		t.Inputs = [][]history.Event{nil}
		x.journal.Draft.ExpectParked()
		return arrived, arrived
	}
	if x.parking.isEmpty() {
		return arrived, 0
	}

	if t.MostParked > 0 {
		t.MostParked -= arrived
	}
	x.journal.Draft.ExpectParked()
	if alone = x.parking.unpark(t); alone > 0 {
		alone += arrived
	}
	return arrived, alone
}

// dropTaken drops the inputs that a turn of the past took: the first n of those that waited, or all where n is 0. It returns how many of them are
// outcomes that have arrived, which the code is still to see.
func dropTaken(x *execution, n int) (arrived int) {
	arrived = x.tasks.arrivals.count()
	if n == 0 {
		x.parking.dropAll()
		return arrived
	}
	arrived = min(arrived, n)
	x.parking.drop(n - arrived)
	return arrived
}

// Arrive takes outcomes of inline activities after they were committed behind the events of the last turn. The next
// turn starts with them.
func (i *Instance) Arrive(outcomes []history.Event) {
	for n := range outcomes {
		i.x.tasks.arrivals.add(&outcomes[n])
		i.last.lastID = i.x.journal.Cursor.Assign()
	}
}

// Wakes reports whether the code would continue if tasks were settled. It continues after one of the tasks that it
// races, or after the last of the tasks that it awaits together.
func (i *Instance) Wakes(settled func(id int64) bool) bool {
	done := func(t *Task) bool { return t.done || settled(t.id) }
	for _, c := range i.x.scheduler.coroutines {
		if !c.over && c.wouldWake(done) {
			return true
		}
	}
	return false
}

// wouldWake reports whether a coroutine that is parked would go on if tasks were done.
func (c *coroutine) wouldWake(done func(*Task) bool) bool {
	some := false
	for _, t := range c.awaits {
		some = some || done(t)
	}
	for _, t := range c.together {
		some = some && done(t)
	}
	return some
}
