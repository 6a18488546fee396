package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Cancellation describes a cancelled part of an execution: its target, who requested the cancellation, and its outcome.
// Its JSON is that of the HTTP API.
type Cancellation struct {
	Target CancelTarget `json:"target"`
	// ID is the ID of the event that scheduled the target. For the instance, it is the ID of the cancel request.
	ID int64 `json:"id"`
	// Name is the name of the activity, of the orchestration, or of the timer if the timer has one (perdure.WithTimerName).
	Name string `json:"name,omitempty"`
	// ChildID is the instance ID of a sub-orchestration.
	ChildID string `json:"childId,omitempty"`

	// Reason is one of the values of perdure.CancelReason. Message is the text that the requester gave.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// RequestedBy is the requester: an IAM identity, a name set by WithCaller or ContextWithCaller, or "client" if the client
	// does not know it. It is "body" if the orchestration's code cancelled, "engine" if the engine did, and "parent:"
	// with the parent's instance ID if the parent did. It is empty for a timer.
	RequestedBy string    `json:"requestedBy,omitempty"`
	DecidedAt   time.Time `json:"decidedAt"`

	// SeenAt is when a worker learned of the cancellation, and EndedAt when the target ended. Each is zero if that has
	// not happened or is unknown.
	SeenAt  time.Time `json:"seenAt,omitzero"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	// End is how the target ended. It is empty if the target has not ended or its end is unknown.
	End CancelOutcome `json:"end,omitempty"`
	// Error is why a sub-orchestration could not be cancelled (OutcomeNotCancellable).
	Error *history.Failure `json:"error,omitempty"`
}

// CancelTarget is the kind of target of a cancellation.
type CancelTarget string

// Targets of a cancellation.
const (
	TargetInstance         CancelTarget = "instance"
	TargetActivity         CancelTarget = "activity"
	TargetTimer            CancelTarget = "timer"
	TargetSubOrchestration CancelTarget = "sub_orchestration"
)

// CancelOutcome is how a cancelled target ended.
type CancelOutcome string

// Outcomes of a cancellation.
const (
	// OutcomeNeverStarted means that the activity's code was not run.
	OutcomeNeverStarted = CancelOutcome(provider.OutcomeNeverStarted)
	// OutcomeStopped means that the activity returned an error after its context ended.
	OutcomeStopped = CancelOutcome(provider.OutcomeStopped)
	// OutcomeCompleted means that the target returned a result despite the cancellation.
	OutcomeCompleted = CancelOutcome(provider.OutcomeCompleted)
	// OutcomeAbandoned means that the activity ignored its context and its worker abandoned it after the grace period.
	OutcomeAbandoned = CancelOutcome(provider.OutcomeAbandoned)
	// OutcomeTimerRemoved means that the timer was removed.
	OutcomeTimerRemoved = CancelOutcome("never_fires")
	// OutcomeCancelled means that the instance ended with StatusCancelled.
	OutcomeCancelled = CancelOutcome("cancelled")
	// OutcomeFailed means that the instance ended without a result and with another status than StatusCancelled.
	OutcomeFailed = CancelOutcome("failed")
	// OutcomeNotCancellable means that the sub-orchestration could not be cancelled. Cancellation.Error is the reason.
	OutcomeNotCancellable = CancelOutcome("refused")
	// OutcomeWorkerLost means that the worker died or was stopped before it reported an end. It occurs only with
	// perdure.WaitForCancellation.
	OutcomeWorkerLost = CancelOutcome(history.OutcomeWorkerLost)
	// OutcomeTimedOut means that the schedule-to-close timeout expired before a worker reported an end. It occurs only with
	// perdure.WaitForCancellation.
	OutcomeTimedOut = CancelOutcome(history.OutcomeTimedOut)
)

// CancellationPage is one page of the cancellations of an execution.
type CancellationPage struct {
	Page[Cancellation]

	InstanceID  string
	ExecutionID string
	// StartedAt is when the execution started.
	StartedAt time.Time
}

// Cancellations yields the cancellations of an execution in the order in which they were decided. An empty executionID
// selects the current execution. The read is strongly consistent.
//
// Cancellations reads the whole history of the execution before it yields the first item. It also reads the instances
// of up to MaxPageSize cancelled sub-orchestrations whose end the history does not contain.
//
// The iterator ends with the first error. The error is ErrNotFound if the instance or the execution does not exist or
// is being purged.
func (c *Client) Cancellations(ctx context.Context, instanceID, executionID string) iter.Seq2[Cancellation, error] {
	return func(yield func(Cancellation, error) bool) {
		found, err := c.cancellations(ctx, instanceID, executionID)
		if err == nil {
			err = c.addChildEnds(ctx, found.ExecutionID, found.Items)
		}
		if err != nil {
			yield(Cancellation{}, fmt.Errorf("client: cancellations: %w", err))
			return
		}
		for i := range found.Items {
			if !yield(found.Items[i], nil) {
				return
			}
		}
	}
}

// CancellationsPage returns one page of Cancellations. Later cancellations are appended, so cursors remain valid. Each
// call reads the whole history, but only the sub-orchestrations of its page.
func (c *Client) CancellationsPage(ctx context.Context, instanceID, executionID string, p Paging) (CancellationPage, error) {
	from, err := placeOf(p.Cursor)
	if err == nil {
		err = inputcheck.Limit(p.Limit)
	}
	if err != nil {
		return CancellationPage{}, fmt.Errorf("client: cancellations: %w", err)
	}
	page, err := c.cancellations(ctx, instanceID, executionID)
	if err != nil {
		return page, fmt.Errorf("client: cancellations: %w", err)
	}

	from = min(from, len(page.Items))
	to := min(from+cmp.Or(p.Limit, defaultPage), len(page.Items))
	if to < len(page.Items) {
		page.NextCursor = strconv.Itoa(to) // what is added comes last, so that places stay
	}
	page.Items = page.Items[from:to]
	if err := c.addChildEnds(ctx, page.ExecutionID, page.Items); err != nil {
		return page, fmt.Errorf("client: cancellations: %w", err)
	}
	return page, nil
}

// placeOf is the place that a cursor of cancellations names.
func placeOf(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	if err := inputcheck.Cursor(cursor); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 1 || cursor != strconv.Itoa(n) {
		return 0, &provider.FieldError{Field: inputcheck.FieldCursor, Problem: "does not belong to this list"}
	}
	return n, nil
}

// cancellations returns a page of all that was cancelled, by history and the activities' records.
func (c *Client) cancellations(ctx context.Context, instanceID, executionID string) (CancellationPage, error) {
	executionID, err := c.executionOf(ctx, instanceID, historyOptions{executionID: executionID})
	found := CancellationPage{InstanceID: instanceID, ExecutionID: executionID}
	if err != nil {
		return found, err
	}
	var l cancelLog
	for e, err := range c.hub.ReadHistory(ctx, instanceID, executionID, 0) {
		if err != nil {
			return found, err
		}
		if e.Kind == history.OrchestrationStarted {
			found.StartedAt = e.Time
		}
		l.add(&e)
	}
	if l.activities > 0 {
		for r, err := range c.hub.ReadActivityRecords(ctx, executionID) {
			if err != nil {
				return found, err
			}
			l.addRecord(&r)
		}
	}
	found.Items = l.items
	return found, nil
}

// addChildEnds adds how the sub-orchestrations ended of whose end history has no event: it reads their instances.
func (c *Client) addChildEnds(ctx context.Context, executionID string, items []Cancellation) error {
	var open []*Cancellation
	for i := range items {
		if x := &items[i]; x.Target == TargetSubOrchestration && x.End == "" && len(open) < MaxPageSize {
			open = append(open, x)
		}
	}
	return concurrently(open, func(x *Cancellation) error {
		in, err := c.hub.ReadInstance(ctx, x.ChildID)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return nil // never begun, or purged
		case err != nil:
			return err
		case in.Parent == nil || in.Parent.ExecutionID != executionID:
			return nil // another instance has the id by now
		}
		switch in.Status {
		case provider.StatusCompleted:
			x.End = OutcomeCompleted
		case provider.StatusCancelled:
			x.End = OutcomeCancelled
		case provider.StatusFailed, provider.StatusTerminated:
			x.End = OutcomeFailed
		default:
			return nil // it is not over
		}
		x.EndedAt = in.UpdatedAt
		return nil
	})
}

// cancelLog collects the cancellations of a history that is passed to it event by event.
type cancelLog struct {
	items      []Cancellation
	places     map[int64]int // the indices of the items, by the ids of what was cancelled
	asked      int           // one more than the index of the instance's own cancellation; 0: none
	activities int
	scheduled  map[int64]history.Event
	name       string
}

func (l *cancelLog) add(e *history.Event) {
	switch e.Kind {
	case history.OrchestrationStarted:
		l.name = e.Name
		l.scheduled = map[int64]history.Event{}
		l.places = map[int64]int{}
	case history.ActivityScheduled, history.SubOrchestrationScheduled:
		l.scheduled[e.ID] = history.Event{Name: e.Name, InstanceID: e.InstanceID, Cancel: e.Cancel}
	case history.TimerCreated:
		if e.DisplayName() != "" {
			l.scheduled[e.ID] = history.Event{Name: e.DisplayName()}
		}
	case history.CancelRequested:
		if l.asked == 0 {
			l.addDecision(e, e.ID, TargetInstance)
			l.asked = len(l.items)
		}
	case history.ActivityCancelRequested:
		l.addDecisions(e, TargetActivity)
	case history.TimerCancelled:
		l.addDecisions(e, TargetTimer)
	case history.SubOrchestrationCancelRequested:
		l.addDecisions(e, TargetSubOrchestration)
	default:
		if !l.isInconclusive(e) {
			l.addEnd(e)
		}
	}
}

func (l *cancelLog) addDecisions(e *history.Event, target CancelTarget) {
	for _, id := range e.Sources() {
		if _, there := l.places[id]; !there { // the first reason stays
			l.addDecision(e, id, target)
		}
	}
}

func (l *cancelLog) addDecision(e *history.Event, id int64, target CancelTarget) {
	c := Cancellation{
		Target: target, ID: id, Name: l.scheduled[id].Name, ChildID: l.scheduled[id].InstanceID,
		Reason: e.Reason, Message: e.Message, RequestedBy: e.RequestedBy, DecidedAt: e.Time,
	}
	switch target {
	case TargetInstance:
		c.Name = l.name
	case TargetTimer:
		c.End = OutcomeTimerRemoved
		c.EndedAt = e.Time
	case TargetActivity:
		l.activities++
	case TargetSubOrchestration:
	}
	l.places[id] = len(l.items)
	l.items = append(l.items, c)
}

// addEnd records how something ended that was cancelled before.
func (l *cancelLog) addEnd(e *history.Event) {
	place, about := l.places[e.SourceEventID]
	if e.Kind.Terminal() {
		place = l.asked - 1
		about = l.asked > 0
	}
	if !about {
		return
	}

	c := &l.items[place]
	switch e.Kind {
	case history.ActivityCompleted, history.SubOrchestrationCompleted, history.OrchestrationCompleted:
		c.End = OutcomeCompleted
	case history.ActivityFailed, history.OutputFailed:
		c.End = l.failedAs(e)
	case history.OrchestrationCancelled:
		c.End = OutcomeCancelled
	case history.SubOrchestrationCancelFailed:
		if c.End != "" {
			return // its end, which is known, is more precise
		}
		c.End = OutcomeNotCancellable
		c.Error = e.Error
	case history.SubOrchestrationFailed:
		c.End = OutcomeFailed
		if e.Error != nil && e.Error.Type == history.TypeCancelled {
			c.End = OutcomeCancelled
		}
	case history.OrchestrationFailed, history.OrchestrationTerminated, history.OrchestrationContinuedAsNew:
		c.End = OutcomeFailed
	default:
		return
	}

	c.EndedAt = e.Time
	if e.Cancel != nil && e.Cancel.SeenAt != nil {
		c.SeenAt = *e.Cancel.SeenAt
	}
}

// isInconclusive reports whether an event is of an output that could not be sent, and leaves open whether its activity
// or child has begun: the output may belong to a later attempt. For activities that are waited for, the event is
// conclusive.
func (l *cancelLog) isInconclusive(e *history.Event) bool {
	from := l.scheduled[e.SourceEventID]
	return e.Kind == history.OutputFailed && (!from.WaitsForCancellation() || from.InstanceID != "")
}

// failedAs returns how a cancelled activity ended, by its failure in history.
func (l *cancelLog) failedAs(e *history.Event) CancelOutcome {
	if from := l.scheduled[e.SourceEventID]; !from.WaitsForCancellation() {
		return OutcomeStopped
	}
	switch history.CancelOutcomeOf(e) {
	case history.OutcomeNeverStarted:
		return OutcomeNeverStarted
	case history.OutcomeAbandoned:
		return OutcomeAbandoned
	case history.OutcomeWorkerLost:
		return OutcomeWorkerLost
	case history.OutcomeTimedOut:
		return OutcomeTimedOut
	default:
		return OutcomeStopped
	}
}

// addRecord adds what a worker has recorded of an activity: its times precede those of history.
func (l *cancelLog) addRecord(r *provider.ActivityRecord) {
	place, cancelled := l.places[r.ActivityID]
	if !cancelled {
		return
	}
	c := &l.items[place]
	if r.CancelOutcome == "" { // it runs, or its worker is gone; when it saw the cancel is recorded if its end is waited for
		if c.SeenAt.IsZero() {
			c.SeenAt = r.SeenAt
		}
		return
	}
	if r.CancelOutcome == provider.OutcomeNeverStarted && c.End != "" {
		return // that is about the delivery which found it cancelled; history has how it ended before
	}

	c.SeenAt = r.SeenAt
	c.EndedAt = r.EndedAt
	c.End = CancelOutcome(r.CancelOutcome)
}
