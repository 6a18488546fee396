// Package cancellog finds the cancellations of an execution and their outcomes.
package cancellog

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/parallel"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Target is the kind of target of a cancellation.
type Target string

// Targets of a cancellation.
const (
	Instance         Target = "instance"
	Activity         Target = "activity"
	Timer            Target = "timer"
	SubOrchestration Target = "sub_orchestration"
)

// Outcomes of a cancellation, in addition to the outcomes of package provider and package history.
const (
	TimerRemoved   provider.CancelOutcome = "never_fires"
	Cancelled      provider.CancelOutcome = "cancelled"
	Failed         provider.CancelOutcome = "failed"
	NotCancellable provider.CancelOutcome = "refused"
)

// Cancellation is a cancelled part of an execution. client converts it to its Cancellation, which has the same fields.
// The tags are for responses of the HTTP API.
type Cancellation struct {
	Target  Target `json:"target"`
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	ChildID string `json:"childId"`

	Reason      string    `json:"reason"`
	Message     string    `json:"message"`
	RequestedBy string    `json:"requestedBy"`
	DecidedAt   time.Time `json:"decidedAt"`

	SeenAt  time.Time              `json:"seenAt"`
	EndedAt time.Time              `json:"endedAt"`
	End     provider.CancelOutcome `json:"end"`
	Error   *history.Failure       `json:"error"`
}

// Log contains the cancellations of an execution in the order in which they were decided.
type Log struct {
	StartedAt time.Time
	Items     []Cancellation

	indexes    map[int64]int // indexes of Items by the ID of the target
	instance   int           // index of the instance's own cancellation plus one, or 0
	activities int           // number of cancelled activities
	scheduled  map[int64]history.Event
	name       string
}

// Backend is the part of a provider that Read uses.
type Backend interface {
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRecord, error]
	ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error)
}

// Read reads the cancellations of an execution from its history and the records of its activities.
func Read(ctx context.Context, hub Backend, of history.ExecutionRef) (*Log, error) {
	l := &Log{}
	for e, err := range hub.ReadHistory(ctx, of.InstanceID, of.ExecutionID, 0) {
		if err != nil {
			return l, err
		}
		l.add(&e)
	}
	if l.activities == 0 {
		return l, nil
	}
	for r, err := range hub.ReadActivityRecords(ctx, of.ExecutionID) {
		if err != nil {
			return l, err
		}
		l.addRecord(&r)
	}
	return l, nil
}

// add processes the next event.
func (l *Log) add(e *history.Event) {
	switch e.Kind {
	case history.OrchestrationStarted:
		l.name = e.Name
		l.StartedAt = e.Time
		l.scheduled = map[int64]history.Event{}
		l.indexes = map[int64]int{}
	case history.ActivityScheduled, history.SubOrchestrationScheduled:
		l.scheduled[e.ID] = history.Event{Name: e.Name, InstanceID: e.InstanceID, Cancel: e.Cancel}
	case history.TimerCreated:
		if e.DisplayName() != "" {
			l.scheduled[e.ID] = history.Event{Name: e.DisplayName()}
		}
	case history.CancelRequested:
		if l.instance == 0 {
			l.addDecision(e, e.ID, Instance)
			l.instance = len(l.Items)
		}
	case history.ActivityCancelRequested:
		l.addDecisions(e, Activity)
	case history.TimerCancelled:
		l.addDecisions(e, Timer)
	case history.SubOrchestrationCancelRequested:
		l.addDecisions(e, SubOrchestration)
	default:
		if !l.isInconclusive(e) {
			l.addEnd(e)
		}
	}
}

func (l *Log) addDecisions(e *history.Event, target Target) {
	for _, id := range e.Sources() {
		if _, exists := l.indexes[id]; !exists { // the history keeps the first reason
			l.addDecision(e, id, target)
		}
	}
}

func (l *Log) addDecision(e *history.Event, id int64, target Target) {
	c := Cancellation{
		Target: target, ID: id, Name: l.scheduled[id].Name, ChildID: l.scheduled[id].InstanceID,
		Reason: e.Reason, Message: e.Message, RequestedBy: e.RequestedBy, DecidedAt: e.Time,
	}
	switch target { //nolint:exhaustive // sub-orchestrations have nothing to add
	case Instance:
		c.Name = l.name
	case Timer:
		c.End = TimerRemoved
		c.EndedAt = e.Time
	case Activity:
		l.activities++
	}
	l.indexes[id] = len(l.Items)
	l.Items = append(l.Items, c)
}

// addEnd records the end of a cancelled target.
func (l *Log) addEnd(e *history.Event) {
	index, cancelled := l.indexes[e.SourceEventID]
	if e.Kind.Terminal() {
		index = l.instance - 1
		cancelled = l.instance > 0
	}
	if !cancelled {
		return
	}

	c := &l.Items[index]
	switch e.Kind {
	case history.ActivityCompleted, history.SubOrchestrationCompleted, history.OrchestrationCompleted:
		c.End = provider.OutcomeCompleted
	case history.ActivityFailed, history.OutputFailed:
		c.End = l.failureOutcome(e)
	case history.OrchestrationCancelled:
		c.End = Cancelled
	case history.SubOrchestrationCancelFailed:
		if c.End != "" {
			return // the known outcome is more precise
		}
		c.End = NotCancellable
		c.Error = e.Error
	case history.SubOrchestrationFailed:
		c.End = Failed
		if e.Error != nil && e.Error.Type == history.TypeCancelled {
			c.End = Cancelled
		}
	case history.OrchestrationFailed, history.OrchestrationTerminated, history.OrchestrationContinuedAsNew:
		c.End = Failed
	default:
		return
	}

	c.EndedAt = e.Time
	if e.Cancel != nil && e.Cancel.SeenAt != nil {
		c.SeenAt = *e.Cancel.SeenAt
	}
}

// isInconclusive reports whether an event records an output that could not be sent, without showing whether the
// activity or child has started. The output may belong to a later attempt. For activities with WaitForCancellation, the
// event is conclusive.
func (l *Log) isInconclusive(e *history.Event) bool {
	from := l.scheduled[e.SourceEventID]
	return e.Kind == history.OutputFailed && (!from.WaitsForCancellation() || from.InstanceID != "")
}

// failureOutcome returns the outcome of a cancelled activity that failed.
func (l *Log) failureOutcome(e *history.Event) provider.CancelOutcome {
	if from := l.scheduled[e.SourceEventID]; !from.WaitsForCancellation() {
		return provider.OutcomeStopped
	}
	switch history.CancelOutcomeOf(e) {
	case history.OutcomeNeverStarted:
		return provider.OutcomeNeverStarted
	case history.OutcomeAbandoned:
		return provider.OutcomeAbandoned
	case history.OutcomeWorkerLost:
		return history.OutcomeWorkerLost
	case history.OutcomeTimedOut:
		return history.OutcomeTimedOut
	default:
		return provider.OutcomeStopped
	}
}

// addRecord adds the record of a worker. Its times are more precise than the times of the history.
func (l *Log) addRecord(r *provider.ActivityRecord) {
	index, cancelled := l.indexes[r.ActivityID]
	if !cancelled {
		return
	}
	c := &l.Items[index]
	if r.CancelOutcome == "" { // running, or the worker is lost; WaitForCancellation records SeenAt
		if c.SeenAt.IsZero() {
			c.SeenAt = r.SeenAt
		}
		return
	}
	if r.CancelOutcome == provider.OutcomeNeverStarted && c.End != "" {
		return // a redelivery was skipped because of the cancel; the history has the end of the earlier run
	}

	c.SeenAt = r.SeenAt
	c.EndedAt = r.EndedAt
	c.End = r.CancelOutcome
}

// AddChildOutcomes adds the outcomes of up to limit sub-orchestrations whose end the history does not contain. It reads
// their instances.
func AddChildOutcomes(ctx context.Context, hub Backend, executionID string, items []Cancellation, limit int) error {
	var open []*Cancellation
	for i := range items {
		if c := &items[i]; c.Target == SubOrchestration && c.End == "" && len(open) < limit {
			open = append(open, c)
		}
	}
	return parallel.Each(open, func(c *Cancellation) error {
		in, err := hub.ReadInstance(ctx, c.ChildID)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return nil // never started, or purged
		case err != nil:
			return err
		case in.Parent == nil || in.Parent.ExecutionID != executionID:
			return nil // the ID belongs to another instance
		}
		switch in.Status {
		case provider.StatusCompleted:
			c.End = provider.OutcomeCompleted
		case provider.StatusCancelled:
			c.End = Cancelled
		case provider.StatusFailed, provider.StatusTerminated:
			c.End = Failed
		default:
			return nil // not ended
		}
		c.EndedAt = in.UpdatedAt
		return nil
	})
}
