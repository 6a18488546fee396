package updates

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// StartsToWait reports whether an orchestration starts to wait for an update. The update must be new (isNew), be
// running, or have ended in this turn, and the orchestration must not already wait for it. If the update ended earlier,
// the orchestration receives the result immediately.
func (u *Updates) StartsToWait(ev *history.Event, isNew bool) bool {
	switch {
	case u == nil:
		return isNew
	case isNew, u.callers.ended[ev.EventID]:
		return !u.callers.has(ev.EventID, ev.Parent)
	case u.isOpen(ev.EventID):
		return !u.callers.isFull() && !u.callers.has(ev.EventID, ev.Parent)
	default:
		return false
	}
}

// Await records that an orchestration waits for an update. If the update has ended, the commit of the turn sends the
// result instead.
func (u *Updates) Await(ev *history.Event, isNew bool) {
	if isNew || u.isOpen(ev.EventID) {
		u.callers.add(ev.EventID, ev.Parent)
	}
}

// RecordRepeated records an update that does not apply, or a request to wait for such an update.
func (u *Updates) RecordRepeated(ev *history.Event) {
	if u.isOpen(ev.EventID) {
		u.callers.recordRejected(ev)
	} else {
		u.callers.recordRepeated(ev)
	}
}

// EndTurn returns the ended updates that were redelivered, the orchestrations that sent them, and the orchestrations
// that may not wait. It resets the state of the turn.
func (u *Updates) EndTurn() (repeated map[string]string, again map[string][]history.Parent, rejected []history.Parent) {
	if u == nil {
		return nil, nil, nil
	}
	c := &u.callers
	repeated, again, rejected = c.repeated, c.again, c.rejected
	c.repeated, c.again, c.rejected = nil, nil, nil
	c.ended = nil
	return repeated, again, rejected
}

// Received returns the inputs that accept the updates that were received before the code started.
func (u *Updates) Received() (inputs []history.Event) {
	if u == nil {
		return nil
	}
	for _, r := range u.received {
		inputs = append(inputs, history.Event{
			Kind: history.UpdateAccepted, Name: r.name, EventID: r.updateID, SourceEventID: r.id,
			RequestedBy: r.requestedBy,
		})
	}
	return inputs
}

// Callers returns the orchestrations that wait for updates.
func (u *Updates) Callers() (all []history.Parent) {
	if u == nil {
		return nil
	}
	for _, id := range u.callers.updateIDs() {
		for _, c := range u.callers.of(id) {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Carry returns the inputs of the next execution. These are the updates in the queue, the updates that were received
// before the code started, and the orchestrations that wait for updates. No message delivers them again.
func (u *Updates) Carry() (inputs []history.Event) {
	if u == nil {
		return nil
	}
	addCallers := func(name, updateID string) {
		for _, c := range u.callers.of(updateID) {
			inputs = append(inputs, history.Event{
				Kind: history.UpdateAwaited, Name: name, EventID: updateID, Parent: &c,
			})
		}
	}
	carried := map[string]bool{}
	for _, r := range append(slices.Clone(u.queue), u.received...) {
		carried[r.updateID] = true
		addCallers(r.name, r.updateID)
		r.refer(u.parts.Payloads)
		inputs = append(inputs, history.Event{
			Kind: history.UpdateAccepted, Name: r.name, EventID: r.updateID, Data: r.data, RequestedBy: r.requestedBy,
		})
	}
	for _, id := range u.callers.updateIDs() {
		if !carried[id] { // the update is a parked input, which follows
			addCallers("", id)
		}
	}
	return inputs
}
