// Package updates runs the update handlers of an execution and holds the updates that have not ended.
package updates

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/identity"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// Handler handles the updates with a name.
type Handler struct {
	// Validate returns the reason for which an update with this input is rejected, or nil to accept the update. It must
	// not change state. Only turns call Validate. A replay reads its result from the history.
	Validate func(input json.RawMessage) *Rejection
	// Run handles the update as code of the orchestration, on its own coroutine, which may decide and wait.
	Run func(input json.RawMessage) (json.RawMessage, *history.Failure)
	// Serialized makes the handler run only after all earlier accepted updates of such handlers have ended. If the
	// execution continues as new, the next execution takes the updates that still wait.
	Serialized bool
}

// Rejection is the reason for which an update is rejected. Reason is one of the history.Rejected constants.
type Rejection struct {
	Reason  string
	Failure *history.Failure
}

// Host is the execution to which the updates belong.
type Host interface {
	// HasStarted reports whether the body has started.
	HasStarted() bool
	// RememberID records the ID of an external event or update that has arrived.
	RememberID(id string)
}

// Parts are the parts of the execution that the updates use.
type Parts struct {
	Host      Host
	Journal   *journal.Journal
	Scheduler *tasks.Scheduler
	Tasks     *tasks.Set
	Payloads  *loading.Loader
	Identity  *identity.Identity
}

// Updates are the handlers of an execution, and the updates that have not ended. Most executions have no updates. A nil
// Updates is empty.
type Updates struct {
	parts    Parts
	handlers handlers
	running  map[int64]*update // by the ID of UpdateAccepted
	received received          // before the code started, in order
	queue    []*update         // accepted, for serialized handlers, in order
	busy     bool              // a serialized handler runs or is about to start
	idle     *tasks.Task       // settles when no handler runs; nil if no coroutine waits for that
	callers  callers
}

// New returns the updates of an execution.
func New(parts *Parts) *Updates {
	return &Updates{parts: *parts, handlers: handlers{}, running: map[int64]*update{}}
}

// update is an update that has not ended.
type update struct {
	id             int64 // of its event
	name, updateID string
	requestedBy    string
	data           history.Payload // nil once the handler runs
	dataEvent      int64           // the event that contains the data
	on             *tasks.Coroutine
}

func newUpdate(ev *history.Event, data history.Payload, dataEvent int64) *update {
	return &update{
		id: ev.ID, name: ev.Name, updateID: ev.EventID, requestedBy: ev.RequestedBy, data: data, dataEvent: dataEvent,
	}
}

// refer replaces large data of a waiting update by a reference. The event may belong to the running turn, so it cannot
// be fetched before the commit. Call refer only at the end of a turn, or for the next execution.
func (u *update) refer(l *loading.Loader) {
	if len(u.data) > loading.CopyLimit {
		u.data = l.Refer(history.DataLocation{EventID: u.dataEvent}, u.data)
	}
}

// received are the updates that wait for the code to start.
type received []*update

// find returns the update of an event, or nil.
func (rs received) find(id int64) *update {
	i := slices.IndexFunc(rs, func(r *update) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return rs[i]
}

// has reports whether an update waits.
func (rs received) has(updateID string) bool {
	return slices.ContainsFunc(rs, func(r *update) bool { return r.updateID == updateID })
}

// dataOf returns the input of an update and the event that contains the input: the given event, or the event that
// received the update.
func (rs received) dataOf(ev *history.Event) (data history.Payload, dataEvent int64) {
	if r := rs.find(ev.SourceEventID); r != nil {
		return r.data, r.dataEvent
	}
	return ev.Data, ev.ID
}

// SetHandler registers the handler for updates with a name, from now on. The history does not record the call.
func (u *Updates) SetHandler(name string, handler Handler) { u.handlers[name] = handler }

// AwaitIdle waits in a scope until no handler runs. own is true if the caller is a handler, which would wait for its
// own end.
func (u *Updates) AwaitIdle(in *tasks.Scope) (own bool) {
	for !u.IsIdle() {
		for _, r := range u.running {
			if r.on == u.parts.Scheduler.Current() {
				return true
			}
		}
		if u.idle == nil {
			u.idle = u.parts.Tasks.NewSignal()
		}
		if u.parts.Scheduler.AwaitOne(in, u.idle) < 0 {
			return false
		}
	}
	return false
}

// IsIdle reports whether no handler runs or waits to run.
func (u *Updates) IsIdle() bool { return u == nil || len(u.running) == 0 && len(u.queue) == 0 }

// HasReceived reports whether an event received an update that waits for the code to start.
func (u *Updates) HasReceived(id int64) bool { return u != nil && u.received.find(id) != nil }

// HasReceivedID reports whether an update waits for the code to start.
func (u *Updates) HasReceivedID(updateID string) bool {
	return u != nil && u.received.has(updateID)
}

// isOpen reports whether an update has arrived and not ended.
func (u *Updates) isOpen(updateID string) bool {
	if u == nil {
		return false
	}
	for _, r := range u.running {
		if r.updateID == updateID {
			return true
		}
	}
	return u.received.has(updateID) ||
		slices.ContainsFunc(u.queue, func(q *update) bool { return q.updateID == updateID })
}

// Accept applies an event about an update.
func (u *Updates) Accept(ev *history.Event) error {
	if ev.Kind != history.UpdateReceived { // the next execution may have to take a received update
		u.parts.Host.RememberID(history.UpdateIDPrefix + ev.EventID)
	}
	data, dataEvent := u.received.dataOf(ev)
	u.received = slices.DeleteFunc(u.received, func(r *update) bool { return r.id == ev.SourceEventID })

	switch ev.Kind {
	case history.UpdateReceived:
		u.received = append(u.received, newUpdate(ev, data, dataEvent))
		return nil
	case history.UpdateRejected:
		u.end(ev.EventID)
		return nil
	default:
		return u.start(ev, data, dataEvent)
	}
}

// start starts the handler of an accepted update.
func (u *Updates) start(ev *history.Event, data history.Payload, dataEvent int64) error {
	handler, set := u.handlers[ev.Name]
	if !set {
		return u.parts.Journal.Nondeterminism(ev.ID, journal.Describe(ev), u.handlers.missing(ev.Name))
	}
	if handler.Serialized {
		u.enqueue(newUpdate(ev, data, dataEvent))
		return nil
	}
	doc, err := u.parts.decode(ev, data)
	if err != nil {
		return err
	}

	started := &update{id: ev.ID, name: ev.Name, updateID: ev.EventID}
	u.running[ev.ID] = started
	u.parts.Scheduler.Spawn(func() {
		started.on = u.parts.Scheduler.Current()
		u.complete(started, handler, doc)
	})
	return nil
}

// complete runs a handler and records its result.
func (u *Updates) complete(done *update, handler Handler, input json.RawMessage) {
	result, failed := handler.Run(input)

	u.parts.Scheduler.Enter()
	d := journal.Decision{Kind: history.UpdateCompleted, Name: done.name, Source: done.id}
	ev, added, err := u.parts.Journal.Decide(&d)
	if err != nil {
		u.parts.Scheduler.Fail(err)
	}
	if added {
		ev.EventID = done.updateID
		if result != nil {
			ev.Result = history.NewInlinePayload(result)
		}
		ev.Error = failed
		ev.Callers = u.callers.of(done.updateID)
	}
	delete(u.running, done.id)
	u.end(done.updateID)
	if handler.Serialized {
		u.startNext()
	}
	if idle := u.idle; idle != nil && u.IsIdle() {
		u.idle = nil
		u.parts.Tasks.Signal(idle)
	}
}

// end records that an update has ended. The commit of the turn responds to the orchestrations that wait for it.
func (u *Updates) end(updateID string) {
	u.callers.end(updateID)
	if !u.parts.Journal.Cursor.Replaying() {
		u.callers.recordEnd(updateID)
	}
}

// Abort records that handlers have not returned before the end of an execution. If the execution continues as new, the
// next execution takes the updates that wait in the queue.
func (u *Updates) Abort(end history.Kind) error {
	if u.IsIdle() {
		return nil
	}
	left := maps.Clone(u.running)
	if end != history.OrchestrationContinuedAsNew {
		for _, q := range u.queue {
			left[q.id] = q
		}
		u.queue = nil
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		aborted := left[id]
		ev, added, err := u.parts.Journal.Decide(&journal.Decision{
			Kind: history.UpdateCompleted, Name: aborted.name, Source: id, Reason: history.TerminalReason(end),
		})
		if err != nil {
			return err
		}
		if added {
			ev.EventID = aborted.updateID
			ev.Callers = u.callers.of(aborted.updateID)
		}
		u.end(aborted.updateID)
	}
	clear(u.running)
	return nil
}

// Bytes returns the approximate memory of the updates, without the coroutines of their handlers.
func (u *Updates) Bytes() (n int) {
	if u == nil {
		return 0
	}
	const each = 192
	for _, r := range u.received {
		n += each + len(r.data)
	}
	for _, q := range u.queue {
		n += each + len(q.data)
	}
	return n + each*(len(u.handlers)+len(u.running))
}
