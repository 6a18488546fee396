// Package outputs computes the outputs of committed segments (the outbox), and the responses to messages from other
// instances.
package outputs

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Set contains the work items, timers, messages and update results that the events of a segment cause.
type Set struct {
	WorkItems []provider.WorkItem
	Timers    []provider.Timer
	// Messages are messages to other instances. The messages to one instance are in order. In messages of kind
	// MessageStart, MessageEventSent and MessageUpdateSent, SourceEventID is the ID of their event. It is not sent.
	Messages []provider.Message
	// UpdateResults are the results of updates (Rejections.PutUpdateResults).
	UpdateResults []provider.UpdateResult
}

// Count returns the number of outputs.
func (o *Set) Count() int {
	return len(o.WorkItems) + len(o.Timers) + len(o.Messages) + len(o.UpdateResults)
}

// Add adds the outputs of more.
func (o *Set) Add(more Set) {
	if o.Count() == 0 {
		*o = more
		return
	}
	o.WorkItems = append(o.WorkItems, more.WorkItems...)
	o.Timers = append(o.Timers, more.Timers...)
	o.Messages = append(o.Messages, more.Messages...)
	o.UpdateResults = append(o.UpdateResults, more.UpdateResults...)
}

// Of returns the outputs of a segment's events (R9). It skips events for which settled returns true, so that a
// redispatch does not repeat settled work (R4). settled can be nil.
func Of(x Origin, s provider.Segment, settled func(eventID int64) bool) Set {
	out := Set{WorkItems: makeWorkItems(x, s.Events)}
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
		case history.ExternalEventSent:
			out.Messages = append(out.Messages, eventOf(x, e))
		case history.UpdateSent:
			out.Messages = append(out.Messages, updateOf(x, e))
		case history.ExternalEventRaised:
			events.addAll(nil, *e)
		case history.UpdateRejected, history.UpdateCompleted:
			out.UpdateResults = append(out.UpdateResults, UpdateResultOf(x, e))
			updates.add(e, e.Callers...)
		case history.UpdateAwaited:
			updates.addRepeated(s.Events[:i], e)
		case history.InputsParked, history.OrchestrationContinuedAsNew:
			events.addAll(nil, e.Inputs...)
		case history.SubOrchestrationCancelRequested:
			out.Messages = append(out.Messages, cancelOf(x, e))
		case history.OrchestrationCompleted, history.OrchestrationFailed, history.OrchestrationCancelled,
			history.OrchestrationTerminated:
			events.addAll(EndedFailure(x.InstanceID), e.Inputs...)
			updates.addEnded(e)
			if x.Parent != nil {
				out.Messages = append(out.Messages, outcomeFor(x, e))
			}
		default: // other events cause no output that is sent after the end of the execution
		}
	}
	out.Messages = append(append(out.Messages, events.messages...), updates.messages...)
	return out
}

// makeWorkItems returns an empty slice with capacity for all work items that the events may cause. The capacity avoids
// repeated copies in a large turn.
func makeWorkItems(x Origin, events []history.Event) []provider.WorkItem {
	if x.Ended {
		return nil
	}
	n := 0
	for i := range events {
		if events[i].Kind == history.ActivityScheduled {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return make([]provider.WorkItem, 0, n)
}

// addAwaited adds the outputs whose results the execution waits for, unless the execution has ended.
func (o *Set) addAwaited(x Origin, sequence int64, e *history.Event) {
	if x.Ended {
		return
	}
	switch e.Kind {
	case history.ActivityScheduled:
		w := provider.WorkItem{
			V: provider.WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence,
			ActivityID: e.ID, Name: e.Name, Queue: e.Queue, Attempt: max(e.Attempt, 1), NotBefore: e.FireAt,
			Input: e.Input, StartToCloseMs: e.StartToCloseMs, HeartbeatMs: e.HeartbeatMs, Retry: e.Retry,
			FairnessKey: e.FairnessKey, ExclusiveKey: e.ExclusiveKey, WaitForCancellation: e.WaitsForCancellation(),
			AtMostOnce: e.AtMostOnce, TraceParent: x.trace,
		}
		if by, limited := e.ScheduleToCloseDeadline(); limited {
			w.ScheduleToCloseDeadline = &by
			t := timerOf(x, sequence, e.ID, by.Add(history.ScheduleToCloseGrace))
			t.Activity, t.WaitForCancellation = true, e.WaitsForCancellation()
			o.Timers = append(o.Timers, t)
		}
		o.WorkItems = append(o.WorkItems, w)
	case history.TimerCreated:
		o.Timers = append(o.Timers, timerOf(x, sequence, e.ID, *e.FireAt))
	case history.OrchestrationStarted:
		if e.StartAt != nil { // the timer wakes the instance (R11)
			o.Timers = append(o.Timers, timerOf(x, 0, e.ID, *e.StartAt))
		}
	case history.SubOrchestrationScheduled:
		m := startOf(x, e)
		m.Parent = &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID}
		m.Detached = false
		o.Messages = append(o.Messages, m)
	default: // other events cause no output
	}
}

func timerOf(x Origin, sequence, id int64, at time.Time) provider.Timer {
	return provider.Timer{
		V: provider.WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: id,
		FireAt: at,
	}
}

func startOf(x Origin, e *history.Event) provider.Message {
	return provider.Message{
		Kind: provider.MessageStart, InstanceID: e.InstanceID, Name: e.Name, Version: e.Version,
		Input: sentPayload(e.Input, provider.MessageStart, e.StartID), StartID: e.StartID, StartAt: e.StartAt,
		Detached: true, SourceEventID: e.ID, TraceParent: x.trace,
	}
}

// outcomeFor returns the message with the outcome for the parent.
func outcomeFor(x Origin, end *history.Event) provider.Message {
	m := ChildOutcome(x.InstanceID, x.Parent)
	m.TraceParent = x.trace
	switch end.Kind {
	case history.OrchestrationCompleted:
		id := provider.StartID(m.ExecutionID, m.SourceEventID)
		m.Result = sentPayload(end.Output, provider.MessageChildOutcome, id)
	case history.OrchestrationCancelled:
		m.Error = &history.Failure{Type: history.TypeCancelled, Message: end.Message, Reason: end.Reason}
	case history.OrchestrationTerminated:
		m.Error = &history.Failure{Type: history.TypeTerminated, Message: end.Message, NonRetryable: true}
	default:
		m.Error = end.Error
	}
	return m
}

// cancelOf returns the message that cancels a child. The StartID restricts the cancel to that child, because a later
// instance can have the same ID (R16).
func cancelOf(x Origin, e *history.Event) provider.Message {
	return provider.Message{
		Kind: provider.MessageCancel, InstanceID: e.InstanceID,
		StartID: provider.StartID(x.ExecutionID, e.SourceEventID), Reason: e.Reason,
		Text:        history.TruncateCancelMessage(e.Message),
		RequestedBy: history.RequestedByParent + x.InstanceID,
		Parent:      &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.SourceEventID},
		TraceParent: x.trace,
	}
}

// ChildOutcome returns a message for the parent of an instance, without Result and Error.
func ChildOutcome(instanceID string, parent *history.Parent) provider.Message {
	return provider.Message{
		Kind: provider.MessageChildOutcome, InstanceID: parent.InstanceID, ExecutionID: parent.ExecutionID,
		SourceEventID: parent.EventID, ChildID: instanceID,
	}
}
