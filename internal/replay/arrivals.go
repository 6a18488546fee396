package replay

import "github.com/perdure/perdure/history"

// arrive takes the outcome of an activity that ran inline, which history has next. The code learns of it in the next turn.
func arrive(x *execution, ev *history.Event) error {
	t, applies := x.concerns(ev)
	if !applies || x.tasks.Arrivals.Has(t.ID()) {
		return x.journal.Cursor.Divergence("no task with this outcome")
	}
	x.tasks.Arrivals.Add(ev)
	return nil
}

// seeArrived has the code go on after each of the first n outcomes that have arrived.
func seeArrived(x *execution, n int) error {
	for range n {
		if x.life.hasEnded() || x.scheduler.IsVoid() {
			return nil
		}
		ev := x.tasks.Arrivals.Next()
		if t, applies := x.concerns(ev); applies {
			if err := x.accept(t, ev); err != nil {
				return err
			}
			x.scheduler.Run(x.life.hasEnded)
		}
	}
	return nil
}

// unpark has a turn take what waits for it: outcomes that have arrived, of which it returns how many, and then parked inputs, which it puts before
// the messages. In a turn that takes only some of all these they replace the messages; then alone is how many they are, else 0.
func unpark(x *execution, t *Turn) (arrived, alone int) {
	arrived = x.tasks.Arrivals.Count()
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
	arrived = x.tasks.Arrivals.Count()
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
		i.x.tasks.Arrivals.Add(&outcomes[n])
		i.last.lastID = i.x.journal.Cursor.Assign()
	}
}

// Wakes reports whether the code would continue if tasks were settled. It continues after one of the tasks that it
// races, or after the last of the tasks that it awaits together.
func (i *Instance) Wakes(settled func(id int64) bool) bool {
	return i.x.scheduler.WouldWake(func(t *Task) bool { return t.IsDone() || settled(t.ID()) })
}
