package memhub

import (
	"cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Fail makes every later call fail with err, until Fail(nil).
func (h *Hub) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = err
}

// Edit calls edit with an instance while the hub is locked. It panics if the instance does not exist.
func (h *Hub) Edit(instanceID string, edit func(*Editor)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in, err := h.find(instanceID)
	if err != nil {
		panic("memhub: no instance " + instanceID)
	}
	edit(&Editor{Instance: &in.Instance, hub: h, stored: in})
}

// Editor changes an instance without the checks of the contract.
type Editor struct {
	*provider.Instance

	hub    *Hub
	stored *instance
}

// Append adds a segment to the current execution: an event, whose ID Append sets, and cancel decisions.
func (e *Editor) Append(event history.Event, cancels provider.Cancels) {
	e.stored.current().append(event, cancels)
}

// ContinueAsNew ends the current execution with the event, and starts the next one with the event's input and
// execution ID. If the event has no execution ID, ContinueAsNew generates one.
func (e *Editor) ContinueAsNew(event history.Event, cancels provider.Cancels) {
	x, next := e.stored.current(), *e.Instance
	next.ExecutionID = cmp.Or(event.ExecutionID, e.hub.nextExecutionID())
	next.ExecutionNumber, next.CreatedAt, next.RequestedBy = next.ExecutionNumber+1, event.Time, ""
	first := provider.Segment{Events: firstEvents(&next, event.Input, "")}
	event.ExecutionID, event.Input = next.ExecutionID, nil
	x.append(event, cancels)
	e.hub.addExecution(e.stored, next.ExecutionID, x.ExecutionID, first)
}

func (x *execution) append(event history.Event, cancels provider.Cancels) {
	last := x.segments[len(x.segments)-1]
	event.ID = last.Events[len(last.Events)-1].ID + 1
	x.add(provider.Segment{Sequence: last.Sequence + 1, Events: []history.Event{event}}, cancels)
}

// SetActivityRecords replaces activity records of an execution.
func (h *Hub) SetActivityRecords(executionID string, records ...provider.ActivityRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range records {
		h.factsOf(executionID).record(records[i].ActivityID).ActivityRecord = records[i]
	}
}

// SetRetries replaces the current attempts of activities of an execution.
func (h *Hub) SetRetries(executionID string, retries ...provider.ActivityRetry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range retries {
		h.factsOf(executionID).retries[retries[i].ActivityID] = retries[i]
	}
}
