package blocked

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// PauseRequest returns the event that records the pause or the resume that a message requests (R25).
func PauseRequest(m *provider.InboxMessage) history.Event {
	e := history.Event{
		Kind: history.ExecutionSuspended, EventID: m.EventID, Message: history.TruncateCancelMessage(m.Text),
		RequestedBy: history.Requester(m.RequestedBy), TraceParent: m.TraceParent,
	}
	if m.Kind == provider.MessageExecutionResumed {
		e.Kind = history.ExecutionResumed
	}
	return e
}

// PauseEvents returns the events of the segment of a pause request. Refused outputs are parked while the instance is
// paused: after a pause request, or before a resume request. Otherwise, parked inputs mean that the code of a build
// does not fit.
func PauseEvents(request history.Event, refused []provider.OutputFailure, now time.Time) []history.Event {
	failed := messages.OutputFailures(refused)
	if len(failed) == 0 {
		return []history.Event{request}
	}
	parked := history.Event{Kind: history.InputsParked, Inputs: failed}
	setInputTimes(&parked, now)
	if request.Kind == history.ExecutionResumed {
		return []history.Event{parked, request}
	}
	return []history.Event{request, parked}
}

// ReportPause logs a committed pause request.
func (p *Policy) ReportPause(ctx context.Context, instanceID string, x *execution.Execution, request *history.Event) {
	attributes := []any{
		"instance", instanceID, "execution", x.Head().ExecutionID, "by", request.RequestedBy,
		"message", request.Message, "parked", x.State().Parked,
	}
	if x.Paused() {
		p.Logger.InfoContext(ctx, "instance paused", append(attributes, "event", logevent.InstancePaused)...)
		return
	}
	p.Logger.InfoContext(ctx, "instance resumed", append(attributes, "event", logevent.InstanceResumed)...)
}
