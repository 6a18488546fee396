package provider

import (
	"github.com/perdure/perdure/history"
)

// Turn is what a turn of an orchestration decided, to be committed as one segment and then sent.
type Turn struct {
	InstanceID string
	// Head is the view the turn was run on. The commit fails with ErrConflict when it is not the head any more.
	Head Head
	// Watermark is the last message this turn consumed, or Head.Watermark when it consumed none.
	Watermark Position
	Events    []history.Event
}

// Status is the status the instance has after the turn; changed is false when it is as before.
func (t *Turn) Status() (s RuntimeStatus, changed bool) {
	if n := len(t.Events); n > 0 {
		if s, ends := StatusAfter(t.Events[n-1].Kind); ends {
			return s, true
		}
	}
	return StatusRunning, t.Head.Segment == 0
}

// Next is the head once the turn is committed.
func (t *Turn) Next() Head {
	return Head{ExecutionID: t.Head.ExecutionID, Segment: t.Head.Segment + 1, Watermark: t.Watermark}
}

// Outputs is what the events of a segment cause outside.
type Outputs struct {
	WorkItems []WorkItem
	Timers    []Timer
}

// Empty reports whether nothing is to be sent.
func (o *Outputs) Empty() bool { return len(o.WorkItems) == 0 && len(o.Timers) == 0 }

// OutputsOf reads off a segment's events what is to be sent for them (R9: the outbox is the segment). Ids for which settled
// answers true are left out: a repeated dispatch does not start again what is over (R4). settled may be nil.
func OutputsOf(instanceID, executionID string, s Segment, settled func(eventID int64) bool) Outputs {
	var out Outputs
	for i := range s.Events {
		e := &s.Events[i]
		if settled != nil && settled(e.ID) {
			continue
		}
		switch e.Kind {
		case history.ActivityScheduled:
			out.WorkItems = append(out.WorkItems, WorkItem{
				V: WireVersion, InstanceID: instanceID, ExecutionID: executionID, Segment: s.Sequence, ActivityID: e.ID,
				Name: e.Name, Queue: e.Queue, Attempt: 1, Input: e.Input, StartToCloseMs: e.StartToCloseMs, Retry: e.Retry,
			})
		case history.TimerCreated:
			out.Timers = append(out.Timers, Timer{
				V: WireVersion, InstanceID: instanceID, ExecutionID: executionID, Segment: s.Sequence, TimerID: e.ID, FireAt: *e.FireAt,
			})
		default: // nothing leaves the execution for it
		}
	}
	return out
}

// Settled collects the ids of a history that are over: completed, failed, fired or cancelled.
func Settled(segments []Segment) map[int64]bool {
	over := map[int64]bool{}
	for i := range segments {
		for j := range segments[i].Events {
			e := &segments[i].Events[j]
			if !e.Kind.Sourced() || e.Kind == history.ActivityRetryScheduled {
				continue
			}
			over[e.SourceEventID] = true
			for _, r := range e.SourceEventIDs {
				for id := r.First; id <= r.Last; id++ {
					over[id] = true
				}
			}
		}
	}
	return over
}
