package provider

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// Outputs are the work items, timers, messages and update results that the events of a segment cause.
type Outputs struct {
	WorkItems []WorkItem
	Timers    []Timer
	// Messages are for other instances, in order for each of them. Messages of kind MessageStart, MessageEventSent and
	// MessageUpdateSent have the ID of their event in SourceEventID, which is not sent.
	Messages []Message
	// UpdateResults are the results of updates (Rejections.PutUpdateResults).
	UpdateResults []UpdateResult
}

// Empty reports whether there are no outputs.
func (o *Outputs) Empty() bool {
	return o.Count() == 0
}

// Count returns the number of outputs.
func (o *Outputs) Count() int {
	return len(o.WorkItems) + len(o.Timers) + len(o.Messages) + len(o.UpdateResults)
}

// Add adds the outputs of more.
func (o *Outputs) Add(more Outputs) {
	if o.Empty() {
		*o = more
		return
	}
	o.WorkItems = append(o.WorkItems, more.WorkItems...)
	o.Timers = append(o.Timers, more.Timers...)
	o.Messages = append(o.Messages, more.Messages...)
	o.UpdateResults = append(o.UpdateResults, more.UpdateResults...)
}

// OutputsOf returns the outputs of a segment's events (R9). It omits events for which settled returns true, so that a
// redispatch does not repeat settled work (R4). settled can be nil.
func OutputsOf(x Origin, s Segment, settled func(eventID int64) bool) Outputs {
	var out Outputs
	if !x.Ended {
		out.WorkItems = makeWorkItems(s.Events)
	}
	x.trace = s.TraceParent()
	events := eventReplies{x: x}
	updates := updateReplies{x: x}

	for i := range s.Events {
		e := &s.Events[i]
		if settled != nil && settled(e.ID) {
			continue
		}
		out.addAwaited(x, s.Sequence, e)

		switch e.Kind {
		case history.DetachedOrchestrationScheduled:
			out.Messages = append(out.Messages, startOf(x, e))
		case history.ExternalEventSent, history.UpdateSent:
			out.Messages = append(out.Messages, sentOf(x, e))
		case history.ExternalEventRaised:
			events.addAll(nil, *e)
		case history.UpdateRejected, history.UpdateCompleted:
			out.UpdateResults = append(out.UpdateResults, UpdateResultOf(x, e))
			updates.add(e, e.Callers...)
		case history.UpdateAwaited:
			updates.addRepeated(s.Events[:i], e)
		case history.InputsParked:
			events.addAll(nil, e.Inputs...)
		case history.SubOrchestrationCancelRequested:
			out.Messages = append(out.Messages, cancelOf(x, e))
		case history.OrchestrationCompleted, history.OrchestrationFailed, history.OrchestrationCancelled,
			history.OrchestrationTerminated:
			events.addAll(EndedFailure(x.InstanceID), e.Inputs...)
			updates.addEnded(e)
			out.Messages = appendOutcome(out.Messages, x, e)
		case history.OrchestrationContinuedAsNew:
			events.addAll(nil, e.Inputs...)
		default: // no other event causes an output that outlives the execution
		}
	}
	out.Messages = append(append(out.Messages, events.messages...), updates.messages...)
	return out
}

// makeWorkItems returns an empty slice with capacity for all work items that the events may cause. Growing it would
// copy those of a large turn several times.
func makeWorkItems(events []history.Event) []WorkItem {
	n := 0
	for i := range events {
		if events[i].Kind == history.ActivityScheduled {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return make([]WorkItem, 0, n)
}

// addAwaited adds the outputs of an event that the execution waits for, unless it has ended.
func (o *Outputs) addAwaited(x Origin, sequence int64, e *history.Event) {
	if x.Ended {
		return
	}
	switch e.Kind {
	case history.ActivityScheduled:
		w := WorkItem{
			V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, ActivityID: e.ID,
			Name: e.Name, Queue: e.Queue, Attempt: max(e.Attempt, 1), NotBefore: e.FireAt, Input: e.Input,
			StartToCloseMs: e.StartToCloseMs, HeartbeatMs: e.HeartbeatMs, Retry: e.Retry,
			FairnessKey: e.FairnessKey, ExclusiveKey: e.ExclusiveKey, WaitForCancellation: e.WaitsForCancellation(),
			AtMostOnce: e.AtMostOnce, TraceParent: x.trace,
		}
		if by, limited := e.ScheduleToCloseDeadline(); limited {
			w.ScheduleToCloseDeadline = &by
			o.Timers = append(o.Timers, Timer{
				V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: e.ID,
				FireAt: by.Add(history.ScheduleToCloseGrace), Activity: true,
				WaitForCancellation: e.WaitsForCancellation(),
			})
		}
		o.WorkItems = append(o.WorkItems, w)
	case history.TimerCreated:
		o.Timers = append(o.Timers, Timer{
			V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: e.ID,
			FireAt: *e.FireAt,
		})
	case history.OrchestrationStarted:
		if e.StartAt != nil { // this timer wakes the instance (R11)
			o.Timers = append(o.Timers, Timer{
				V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, TimerID: e.ID, FireAt: *e.StartAt,
			})
		}
	case history.SubOrchestrationScheduled:
		m := startOf(x, e)
		m.Parent = &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID}
		m.Detached = false
		o.Messages = append(o.Messages, m)
	default: // no other event sends anything
	}
}

func startOf(x Origin, e *history.Event) Message {
	return Message{
		Kind: MessageStart, InstanceID: e.InstanceID, Name: e.Name, Version: e.Version,
		Input: sentPayload(e.Input, MessageStart, e.StartID), StartID: e.StartID, StartAt: e.StartAt, Detached: true,
		SourceEventID: e.ID, TraceParent: x.trace,
	}
}

// appendOutcome adds the message with the outcome for the parent, if there is one.
func appendOutcome(ms []Message, x Origin, end *history.Event) []Message {
	if x.Parent == nil {
		return ms
	}
	return append(ms, outcomeFor(x, end))
}

// outcomeFor returns the message with the outcome for the parent.
func outcomeFor(x Origin, end *history.Event) Message {
	m := ChildOutcome(x.InstanceID, x.Parent)
	m.TraceParent = x.trace
	switch end.Kind {
	case history.OrchestrationCompleted:
		m.Result = sentPayload(end.Output, MessageChildOutcome, StartID(m.ExecutionID, m.SourceEventID))
	case history.OrchestrationCancelled:
		m.Error = &history.Failure{Type: history.TypeCancelled, Message: end.Message, Reason: end.Reason}
	case history.OrchestrationTerminated:
		m.Error = &history.Failure{Type: history.TypeTerminated, Message: end.Message, NonRetryable: true}
	default:
		m.Error = end.Error
	}
	return m
}

// StartID returns the StartID of the start that an event of an execution requests. It is the same for each repetition
// (R10).
func StartID(executionID string, eventID int64) string {
	return fmt.Sprintf("%s:%d", executionID, eventID)
}

// cancelOf returns the message that cancels a child. The StartID restricts it to that child, because another instance
// can have its ID later (R16).
func cancelOf(x Origin, e *history.Event) Message {
	return Message{
		Kind: MessageCancel, InstanceID: e.InstanceID, StartID: StartID(x.ExecutionID, e.SourceEventID),
		Reason: e.Reason, Text: history.TruncateCancelMessage(e.Message),
		RequestedBy: history.RequestedByParent + x.InstanceID,
		Parent:      &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.SourceEventID},
		TraceParent: x.trace,
	}
}

// ChildOutcome returns a message for the parent of an instance, without Result and Error.
func ChildOutcome(instanceID string, parent *history.Parent) Message {
	return Message{
		Kind: MessageChildOutcome, InstanceID: parent.InstanceID, ExecutionID: parent.ExecutionID,
		SourceEventID: parent.EventID, ChildID: instanceID,
	}
}
