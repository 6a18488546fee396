package replay

import (
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
)

// isAwaitedAnew reports whether an orchestration waits for an update from now on: the update is new, or is under way, or is over since the turn under
// way, and no copy of this has come before. Of an update that was over before it is not: then it is answered at once.
func isAwaitedAnew(x *execution, ev *history.Event) bool {
	switch {
	case ev.Parent == nil:
		return false
	case x.journal.Cursor.Replaying():
		return true // a turn has decided so
	case isNewID(x, ev.EventID), x.updates.settled[ev.EventID]:
		return !slices.Contains(x.updates.callersOf(ev.EventID), *ev.Parent)
	case x.updates.isOpen(ev.EventID):
		return x.updates.waiting < mostCallerBytes && !slices.Contains(x.updates.callersOf(ev.EventID), *ev.Parent)
	default:
		return false
	}
}

// mostCallerBytes bounds the orchestrations that wait for updates of an execution, as history names them: its end, or its next execution, has to name all.
// Of instance ids of 36 bytes these are some twelve thousand.
const mostCallerBytes = 2 << 20

// callerBytes is about what history needs to name an orchestration that waits.
func callerBytes(c *history.Parent) int {
	const each = 128
	return each + len(c.InstanceID)
}

// noteTurnedAway notes an orchestration that would wait for an update which is under way, and that is one too many.
func noteTurnedAway(x *execution, ev *history.Event) {
	u := x.updates
	if ev.Kind == history.UpdateAwaited && ev.Parent != nil && !slices.Contains(u.callersOf(ev.EventID), *ev.Parent) {
		u.turnedAway = append(u.turnedAway, *ev.Parent)
	}
}

// callersOf returns the orchestrations that wait for an update.
func (u *updates) callersOf(updateID string) []history.Parent {
	if u == nil {
		return nil
	}
	return u.awaiting[updateID]
}

// await notes that an orchestration waits for an update, unless that is over: then the commit of the turn answers it.
func await(x *execution, ev *history.Event) {
	if !isNewID(x, ev.EventID) && !x.updates.isOpen(ev.EventID) {
		return
	}
	u := changing(x)
	if u.awaiting == nil {
		u.awaiting = map[string][]history.Parent{}
	}
	u.awaiting[ev.EventID] = append(u.awaiting[ev.EventID], *ev.Parent)
	u.waiting += callerBytes(ev.Parent)
}

// settleUpdate notes that an update is over: who waits for it is answered.
func settleUpdate(x *execution, updateID string) {
	callers := x.updates.awaiting[updateID]
	for i := range callers {
		x.updates.waiting -= callerBytes(&callers[i])
	}
	delete(x.updates.awaiting, updateID)
	noteSettled(x, updateID)
}

// unheard are the orchestrations that wait for updates which the execution ends without having come to, by what was recorded and by what is parked.
func unheard(x *execution) (callers []history.Parent) {
	add := func(c history.Parent) {
		if !slices.Contains(callers, c) {
			callers = append(callers, c)
		}
	}
	if x.updates != nil {
		for _, id := range slices.Sorted(maps.Keys(x.updates.awaiting)) {
			for _, c := range x.updates.awaiting[id] {
				add(c)
			}
		}
	}
	for _, in := range x.parking.notTaken() {
		if in.Kind == history.UpdateAwaited && in.Parent != nil {
			add(*in.Parent)
		}
	}
	return callers
}
