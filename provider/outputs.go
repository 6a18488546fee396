package provider

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// Outputs is what the events of a segment cause outside.
type Outputs struct {
	WorkItems []WorkItem
	Timers    []Timer
	// Messages are for other instances. Those of Kind MessageStart have the id of their event in SourceEventID, which does
	// not travel.
	Messages []Message
}

// Empty reports whether nothing is to be sent.
func (o *Outputs) Empty() bool {
	return len(o.WorkItems) == 0 && len(o.Timers) == 0 && len(o.Messages) == 0
}

// Add adds what more causes.
func (o *Outputs) Add(more Outputs) {
	if o.Empty() {
		*o = more
		return
	}
	o.WorkItems = append(o.WorkItems, more.WorkItems...)
	o.Timers = append(o.Timers, more.Timers...)
	o.Messages = append(o.Messages, more.Messages...)
}

// OutputsOf reads off a segment's events what is to be sent for them (R9: the outbox is the segment). Ids for which settled
// answers true are left out: a repeated dispatch does not start again what is over (R4). settled may be nil.
func OutputsOf(x Origin, s Segment, settled func(eventID int64) bool) Outputs {
	var out Outputs
	if !x.Ended {
		out.WorkItems = room(s.Events)
	}
	for i := range s.Events {
		e := &s.Events[i]
		if settled != nil && settled(e.ID) {
			continue
		}
		if !x.Ended {
			out.await(x, s.Sequence, e)
		}
		switch e.Kind {
		case history.DetachedOrchestrationScheduled:
			out.Messages = append(out.Messages, startOf(e))
		case history.SubOrchestrationCancelRequested:
			out.Messages = append(out.Messages, cancelOf(x, e))
		case history.OrchestrationCompleted, history.OrchestrationFailed, history.OrchestrationCancelled, history.OrchestrationTerminated:
			if x.Parent != nil {
				out.Messages = append(out.Messages, outcomeFor(x, e))
			}
		default: // nothing that outlives the execution
		}
	}
	return out
}

// room is for the work items that events cause, at the most: to let it grow would copy those of a large turn several times.
func room(events []history.Event) []WorkItem {
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

// await adds what the execution waits for.
func (o *Outputs) await(x Origin, sequence int64, e *history.Event) {
	switch e.Kind {
	case history.ActivityScheduled:
		w := WorkItem{
			V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, ActivityID: e.ID,
			Name: e.Name, Queue: e.Queue, Attempt: 1, Input: e.Input, StartToCloseMs: e.StartToCloseMs, HeartbeatMs: e.HeartbeatMs, Retry: e.Retry,
			WaitCancel: e.Waits(),
		}
		if by, limited := closeBy(e); limited {
			w.CloseBy = &by
			o.Timers = append(o.Timers, Timer{
				V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: e.ID,
				FireAt: by.Add(closeLeeway), Activity: true, WaitCancel: e.Waits(),
			})
		}
		o.WorkItems = append(o.WorkItems, w)
	case history.TimerCreated:
		o.Timers = append(o.Timers, Timer{
			V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence, TimerID: e.ID, FireAt: *e.FireAt,
		})
	case history.OrchestrationStarted:
		if e.StartAt != nil { // the timer that wakes it (R11)
			o.Timers = append(o.Timers, Timer{V: WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, TimerID: e.ID, FireAt: *e.StartAt})
		}
	case history.SubOrchestrationScheduled:
		m := startOf(e)
		m.Parent, m.Detached = &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID}, false
		o.Messages = append(o.Messages, m)
	default: // nothing leaves the execution for it
	}
}

func startOf(e *history.Event) Message {
	return Message{
		Kind: MessageStart, InstanceID: e.InstanceID, Name: e.Name, Version: e.Version, Input: e.Input, StartID: e.StartID, Detached: true,
		SourceEventID: e.ID,
	}
}

// outcomeFor tells the parent how its child ended.
func outcomeFor(x Origin, end *history.Event) Message {
	m := ChildOutcome(x.InstanceID, x.Parent)
	switch end.Kind {
	case history.OrchestrationCompleted:
		m.Result = end.Output
	case history.OrchestrationCancelled:
		m.Error = &history.Failure{Type: history.TypeCancelled, Message: end.Message, Reason: end.Reason}
	case history.OrchestrationTerminated:
		m.Error = &history.Failure{Type: history.TypeTerminated, Message: end.Message, NonRetryable: true}
	default:
		m.Error = end.Error
	}
	return m
}

// StartID names the start that an event of an execution asks for: sent again, it is the same start (R10).
func StartID(executionID string, eventID int64) string {
	return fmt.Sprintf("%s:%d", executionID, eventID)
}

// cancelOf asks a child to end: it, and nobody else who may have its id (R16).
func cancelOf(x Origin, e *history.Event) Message {
	return Message{
		Kind: MessageCancel, InstanceID: e.InstanceID, StartID: StartID(x.ExecutionID, e.SourceEventID), Reason: e.Reason, Text: history.CutCancelMessage(e.Message),
		RequestedBy: history.RequestedByParent + x.InstanceID,
		Parent:      &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.SourceEventID},
	}
}

// ChildOutcome is a message for the parent of an instance, still without Result or Error.
func ChildOutcome(instanceID string, parent *history.Parent) Message {
	return Message{
		Kind: MessageChildOutcome, InstanceID: parent.InstanceID, ExecutionID: parent.ExecutionID,
		SourceEventID: parent.EventID, ChildID: instanceID,
	}
}

// Settled collects the ids of a history that are over: completed, failed, fired or cancelled. An activity that is waited for when it is
// cancelled is not over by that: its work item leads to whoever tells its end.
func Settled(segments []Segment) map[int64]bool {
	over, waits := map[int64]bool{}, map[int64]bool{}
	for i := range segments {
		for j := range segments[i].Events {
			e := &segments[i].Events[j]
			if e.Kind == history.ActivityScheduled && e.Waits() {
				waits[e.ID] = true
			}
			settle(over, waits, e)
			for k := range e.Inputs { // parked: their turn is still to come
				settle(over, waits, &e.Inputs[k])
			}
		}
	}
	return over
}

func settle(over, waits map[int64]bool, e *history.Event) {
	for _, id := range e.Settles() {
		if e.Kind != history.ActivityCancelRequested || !waits[id] {
			over[id] = true
		}
	}
}
