package execution

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Recipient decides which messages concern an execution and its code.
type Recipient struct {
	executionID, startID string
	// rejected are events of other instances that were reported as undelivered before the execution started. They must
	// not reach the execution. No event is added while it runs.
	rejected     provider.RejectedEvents
	readRejected bool
	// responses are the responses to waiting updates that may have ended, by their IDs. The value of an update without
	// a response is nil.
	responses map[string]*Response
}

// Response is the response to an update that has ended.
type Response struct {
	Result history.Payload
	Error  *history.Failure // nil: the update has a result
}

// Concerns reports whether a message is for the execution, or for the current execution of the instance.
func (r *Recipient) Concerns(m *provider.InboxMessage) bool {
	return (m.ExecutionID == "" || m.ExecutionID == r.executionID) && (m.StartID == "" || m.StartID == r.startID)
}

// IsStart reports whether the execution has a start ID.
func (r *Recipient) IsStart(startID string) bool { return startID == r.startID }

// HasRejectedEvents reports whether SetRejectedEvents was called.
func (r *Recipient) HasRejectedEvents() bool { return r.readRejected }

// SetRejectedEvents sets the events of other instances that must not reach the execution.
func (r *Recipient) SetRejectedEvents(events provider.RejectedEvents) {
	r.rejected, r.readRejected = events, true
}

// InheritRejectedEvents sets the rejected events of the previous execution.
func (r *Recipient) InheritRejectedEvents(previous *Recipient) {
	r.rejected, r.readRejected = previous.rejected, previous.readRejected
}

// HasResponse reports whether SetResponse was called for an update.
func (r *Recipient) HasResponse(updateID string) bool {
	_, ok := r.responses[updateID]
	return ok
}

// SetResponse sets the response to a waiting update, or nil if it has none.
func (r *Recipient) SetResponse(updateID string, a *Response) {
	if r.responses == nil {
		r.responses = map[string]*Response{}
	}
	r.responses[updateID] = a
}

// Response returns the response to the update of a message. It returns nil if x is nil, if the message is no update, or
// if the update has no response.
func (x *Execution) Response(m *provider.InboxMessage) *Response {
	if x == nil || m.Kind != provider.MessageUpdateSent && m.Kind != provider.MessageUpdate {
		return nil
	}
	return x.Recipient.responses[m.EventID]
}

// BypassesCode reports whether the code of an execution must not receive a message: starts, status refreshes, a cancel
// of the parent for an ended instance or another start, and events and updates of other instances that are rejected or
// already have a response. x is nil if there is no instance.
func (x *Execution) BypassesCode(m provider.InboxMessage) bool {
	return m.Kind == provider.MessageStart || m.IsRefresh() ||
		IsCancelOfParent(&m) && (x == nil || x.Ended() || !x.Recipient.IsStart(m.StartID)) ||
		m.IsSent() && (x == nil || x.Ended() || x.Recipient.rejected.Has(&m.Message)) || x.Response(&m) != nil
}

// EndsTurn reports whether a message cannot be in the same turn as the messages before it.
func (x *Execution) EndsTurn(m provider.InboxMessage) bool {
	return x.BypassesCode(m) || x != nil && !x.Ended() && IsPauseRequest(&m)
}

// IsCancelOfParent reports whether a message is the cancel of a sub-orchestration by its parent.
func IsCancelOfParent(m *provider.InboxMessage) bool {
	return m.Kind == provider.MessageCancel && m.Parent != nil
}

// IsPauseRequest reports whether a message pauses or resumes its instance.
func IsPauseRequest(m *provider.InboxMessage) bool {
	return m.Kind == provider.MessageExecutionSuspended || m.Kind == provider.MessageExecutionResumed
}
