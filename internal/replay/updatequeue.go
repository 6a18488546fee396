package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// Handlers that run one at a time take the updates of an execution in the order in which they were accepted.

// enqueue has an update that was accepted wait for its turn.
func enqueue(x *execution, next *update) {
	u := x.updates
	u.queue = append(u.queue, next)
	if !u.busy {
		u.busy = true
		takeNext(x)
	}
}

// takeNext has the update run that waits first. It leaves the queue once its coroutine runs: code that continues as new before that hands it on.
func takeNext(x *execution) {
	if len(x.updates.queue) == 0 {
		x.updates.busy = false
		return
	}
	x.scheduler.Spawn(func() { x.protect(func() { runNext(x) }) })
}

func runNext(x *execution) {
	u := x.updates.queue[0]
	x.updates.queue = slices.Delete(x.updates.queue, 0, 1)
	handler, set := x.updates.handlers[u.name]
	ev := &history.Event{ID: u.id, Kind: history.UpdateAccepted, Name: u.name, EventID: u.updateID}
	if !set {
		x.scheduler.Fail(x.journal.Nondeterminism(u.id, journal.Describe(ev), unknownUpdate(x, u.name)))
	}
	doc, err := openUpdate(x, ev, u.data)
	if err != nil {
		x.scheduler.Fail(err)
	}
	u.data, u.on = nil, x.scheduler.Current()
	x.updates.running[u.id] = u
	completeUpdate(x, u, handler, doc)
}

// shed replaces the data of updates that wait by references, once they hold more than a bound of it.
func (u *updates) shed(l *payloads.Loader) {
	if u == nil {
		return
	}
	kept := 0
	for _, waiting := range [][]*update{u.queue, u.received} {
		for _, w := range waiting {
			if kept += len(w.data); kept > payloads.MemoryLimit {
				w.refer(l)
			}
		}
	}
}

// queuedIDs are the ids of the updates that wait for their turn, as the next execution would know them.
func (u *updates) queuedIDs() (ids []string) {
	if u == nil {
		return nil
	}
	for _, q := range u.queue {
		ids = append(ids, history.UpdateIDPrefix+q.updateID)
	}
	return ids
}

// MayRecover reports whether code may recover a panic. It may not if the engine is ending its coroutine.
func MayRecover(c *Context) bool {
	return !c.x.scheduler.Gate().Is(coroutine.Unwinding) && !c.x.scheduler.Gate().Is(coroutine.Abandoned)
}
