package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/updates"
)

// UpdateHandler handles the updates with a name.
type UpdateHandler = updates.Handler

// UpdateRejection is the reason for which an update is rejected.
type UpdateRejection = updates.Rejection

// SetUpdateHandler registers the handler for updates with a name, from now on. The history does not record the call.
func (u Unscoped) SetUpdateHandler(name string, handler UpdateHandler) {
	u.x.scheduler.Enter()
	u.x.makeUpdates().SetHandler(name, handler)
}

// AwaitUpdates waits until no update handler runs. If the scope is cancelled first, it returns the scope's
// cancellation. own is true if the caller is a handler, which would wait for its own end.
func (c *Context) AwaitUpdates() (cancelled *Cancellation, own bool) {
	c.x.scheduler.Enter()
	if c.x.updates.AwaitIdle(c.scope) {
		return nil, true
	}
	return c.scope.Cancellation(), false
}

// makeUpdates returns the updates of the execution. It creates them in the first call.
func (x *execution) makeUpdates() *updates.Updates {
	if x.updates == nil {
		x.updates = updates.New(&updates.Parts{
			Host: updateHost{x}, Journal: &x.journal, Scheduler: &x.scheduler, Tasks: &x.tasks, Payloads: &x.payloads,
			Identity: &x.identity,
		})
	}
	return x.updates
}

type updateHost struct{ x *execution }

func (h updateHost) HasStarted() bool     { return h.x.lifecycle.hasStarted() }
func (h updateHost) RememberID(id string) { h.x.mailbox().Remember(id) }

// isNewUpdate reports whether an event about an update applies, because its ID is new, or because the update was
// received.
func (x *execution) isNewUpdate(ev *history.Event) bool {
	if ev.SourceEventID != 0 {
		return x.updates.HasReceived(ev.SourceEventID)
	}
	return x.isNewUpdateID(ev.EventID)
}

// isNewUpdateID reports whether no update with this ID has arrived.
func (x *execution) isNewUpdateID(updateID string) bool {
	return !x.mail.Knows(history.UpdateIDPrefix+updateID) && !x.updates.HasReceivedID(updateID)
}

// startsToWait reports whether an orchestration starts to wait for an update. On replay, the recorded turn has decided
// this.
func (x *execution) startsToWait(ev *history.Event) bool {
	if ev.Parent == nil {
		return false
	}
	return x.journal.Cursor.Replaying() || x.updates.StartsToWait(ev, x.isNewUpdateID(ev.EventID))
}

// waitingCallers returns the orchestrations that wait for updates that the execution has not processed, including
// parked ones.
func (x *execution) waitingCallers() []history.Parent {
	callers := x.updates.Callers()
	for _, in := range x.parked.waiting() {
		if in.Kind == history.UpdateAwaited && in.Parent != nil && !slices.Contains(callers, *in.Parent) {
			callers = append(callers, *in.Parent)
		}
	}
	return callers
}
