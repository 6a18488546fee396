package updates

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
)

// Serialized handlers process the updates of an execution in the order in which they were accepted.

// enqueue adds an accepted update to the queue of serialized handlers.
func (u *Updates) enqueue(next *update) {
	u.queue = append(u.queue, next)
	if !u.busy {
		u.busy = true
		u.startNext()
	}
}

// startNext starts the first update of the queue. The update leaves the queue when its coroutine runs. If the code
// continues as new before that, the next execution takes the update.
func (u *Updates) startNext() {
	if len(u.queue) == 0 {
		u.busy = false
		return
	}
	u.parts.Scheduler.Spawn(u.runNext)
}

func (u *Updates) runNext() {
	first := u.queue[0]
	u.queue = slices.Delete(u.queue, 0, 1)
	handler, set := u.handlers[first.name]
	ev := &history.Event{ID: first.id, Kind: history.UpdateAccepted, Name: first.name, EventID: first.updateID}
	if !set {
		missing := u.handlers.missing(first.name)
		u.parts.Scheduler.Fail(u.parts.Journal.Nondeterminism(first.id, journal.Describe(ev), missing))
	}
	doc, err := u.parts.decode(ev, first.data)
	if err != nil {
		u.parts.Scheduler.Fail(err)
	}
	first.data, first.on = nil, u.parts.Scheduler.Current()
	u.running[first.id] = first
	u.complete(first, handler, doc)
}

// ReferenceLargeData replaces the data of waiting updates by references if there is too much of it.
func (u *Updates) ReferenceLargeData() {
	if u == nil {
		return
	}
	kept := 0
	for _, waiting := range [][]*update{u.queue, u.received} {
		for _, w := range waiting {
			if kept += len(w.data); kept > loading.MemoryLimit {
				w.refer(u.parts.Payloads)
			}
		}
	}
}

// QueuedIDs returns the IDs of the updates in the queue, in the form in which the next execution records them.
func (u *Updates) QueuedIDs() (ids []string) {
	if u == nil {
		return nil
	}
	for _, q := range u.queue {
		ids = append(ids, history.UpdateIDPrefix+q.updateID)
	}
	return ids
}
