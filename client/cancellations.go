package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Cancellation is something of an execution that was cancelled: who wanted it, and what became of it. Its JSON is that of the
// HTTP API.
type Cancellation struct {
	Target CancelTarget `json:"target"`
	// ID is that of the event that scheduled it; of the instance itself, the id of the request.
	ID int64 `json:"id"`
	// Name is that of the activity, the child's orchestration, or the instance's own.
	Name string `json:"name,omitempty"`
	// ChildID is the instance id of a sub-orchestration.
	ChildID string `json:"childId,omitempty"`

	// Reason is one of the stable set of perdure.CancelReason, and Message what somebody has said besides.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// RequestedBy is the IAM identity of who asked, or what a program calls itself; "client" where nobody knows; or "body", "engine" or "parent:" and an
	// instance id, of which the same is known. Empty for a timer, of which history does not say.
	RequestedBy string    `json:"requestedBy,omitempty"`
	DecidedAt   time.Time `json:"decidedAt"`

	// SeenAt is when a worker saw that the activity is cancelled, and EndedAt when it was over; zero: not yet, or nobody knows.
	SeenAt  time.Time `json:"seenAt,omitzero"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	// End is how; empty when it is not over, or nobody knows.
	End CancelEnd `json:"end,omitempty"`
	// Error is why a sub-orchestration was not cancelled.
	Error *history.Failure `json:"error,omitempty"`
}

// CancelTarget is what was cancelled.
type CancelTarget string

// What can be cancelled.
const (
	TargetInstance         CancelTarget = "instance"
	TargetActivity         CancelTarget = "activity"
	TargetTimer            CancelTarget = "timer"
	TargetSubOrchestration CancelTarget = "sub_orchestration"
)

// CancelEnd is how something ended that was cancelled.
type CancelEnd string

// The ends. Those of activities are told by their workers; where one could not tell, an outcome in history does.
const (
	EndNeverStarted = CancelEnd(provider.EndNeverStarted) // of an activity: its code was not run
	EndStopped      = CancelEnd(provider.EndStopped)      // of an activity: it returned an error after its context had ended
	EndFinished     = CancelEnd(provider.EndFinished)     // it came to its result all the same
	EndLeaked       = CancelEnd(provider.EndLeaked)       // of an activity: it ignored its context, and nobody waits for it
	EndNeverFires   = CancelEnd("never_fires")            // of a timer
	EndCancelled    = CancelEnd("cancelled")              // of an instance: it ended Cancelled
	EndFailed       = CancelEnd("failed")                 // of an instance: it ended otherwise than Cancelled, without a result
	EndRefused      = CancelEnd("refused")                // of a sub-orchestration: it could not be cancelled, and Error says why
	// Of an activity whose call asked for perdure.WaitForCancellation: its worker died, or had to stop, before it told of an end; its
	// schedule-to-close time was over before anybody did.
	EndWorkerGone = CancelEnd(history.EndWorkerGone)
	EndTimedOut   = CancelEnd(history.EndTimedOut)
)

// Cancellations is what was cancelled in an execution, in the order in which it was decided: what is added comes last.
type Cancellations struct {
	InstanceID  string
	ExecutionID string
	StartedAt   time.Time // of the execution
	Items       []Cancellation
}

// CancellationPage is one page of what was cancelled in an execution.
type CancellationPage struct {
	Cancellations

	NextCursor string // empty: no more
}

// CancellationsPage is a page of Cancellations: of at most limit (0 is 100, at most MaxPage), from where the page with this
// NextCursor ended. A cursor of nowhere is a *provider.FieldError.
func (c *Client) CancellationsPage(ctx context.Context, instanceID, executionID string, limit int, cursor string) (CancellationPage, error) {
	var page CancellationPage
	from, err := placeOf(cursor)
	if err == nil {
		err = checkLimit(limit)
	}
	if err != nil {
		return page, fmt.Errorf("client: cancellations: %w", err)
	}
	if page.Cancellations, err = c.cancellations(ctx, instanceID, executionID); err != nil {
		return page, fmt.Errorf("client: cancellations: %w", err)
	}
	from = min(from, len(page.Items))
	to := min(from+cmp.Or(limit, defaultPage), len(page.Items))
	if to < len(page.Items) {
		page.NextCursor = strconv.Itoa(to) // what is added comes last, so that places stay
	}
	page.Items = page.Items[from:to]
	if err := c.askChildren(ctx, page.ExecutionID, page.Items); err != nil {
		return page, fmt.Errorf("client: cancellations: %w", err)
	}
	return page, nil
}

// placeOf is the place that a cursor of cancellations names.
func placeOf(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	if err := checkCursor(cursor); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 1 || cursor != strconv.Itoa(n) {
		return 0, &provider.FieldError{Field: fieldCursor, Problem: "belongs to another list"}
	}
	return n, nil
}

// Cancellations reads what was cancelled in an execution of an instance, the current one when executionID is empty, strongly
// consistent: who asked for it, when and why it was decided, when the worker saw it, and how it ended. It reads the execution's
// whole history, and of the sub-orchestrations of whose end that does not tell, as where their parent was over before, the instances: of the first
// MaxPage. ErrNotFound when there is no such instance, it has no such execution, or is being purged.
func (c *Client) Cancellations(ctx context.Context, instanceID, executionID string) (Cancellations, error) {
	found, err := c.cancellations(ctx, instanceID, executionID)
	if err == nil {
		err = c.askChildren(ctx, found.ExecutionID, found.Items)
	}
	if err != nil {
		return found, fmt.Errorf("client: cancellations: %w", err)
	}
	return found, nil
}

func (c *Client) cancellations(ctx context.Context, instanceID, executionID string) (Cancellations, error) {
	executionID, err := c.executionOf(ctx, instanceID, historyOptions{executionID: executionID})
	found := Cancellations{InstanceID: instanceID, ExecutionID: executionID}
	if err != nil {
		return found, err
	}
	var l cancelLog
	for e, err := range c.provider.ReadHistory(ctx, instanceID, executionID, 0) {
		if err != nil {
			return found, err
		}
		if e.Kind == history.OrchestrationStarted {
			found.StartedAt = e.Time
		}
		l.add(&e)
	}
	if l.activities > 0 {
		for r, err := range c.provider.ReadActivityRecords(ctx, executionID) {
			if err != nil {
				return found, err
			}
			l.witness(&r)
		}
	}
	found.Items = l.items
	return found, nil
}

// askChildren adds how those sub-orchestrations ended of which history does not tell: the instances know.
func (c *Client) askChildren(ctx context.Context, executionID string, items []Cancellation) error {
	var open []*Cancellation
	for i := range items {
		if x := &items[i]; x.Target == TargetSubOrchestration && x.End == "" && len(open) < MaxPage {
			open = append(open, x)
		}
	}
	return sideBySide(open, func(x *Cancellation) error {
		in, err := c.provider.ReadInstance(ctx, x.ChildID)
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
			x.End = EndFinished
		case provider.StatusCancelled:
			x.End = EndCancelled
		case provider.StatusFailed, provider.StatusTerminated:
			x.End = EndFailed
		default:
			return nil // it is not over
		}
		x.EndedAt = in.UpdatedAt
		return nil
	})
}

// cancelLog collects the cancellations of a history that is given to it event by event.
type cancelLog struct {
	items      []Cancellation
	places     map[int64]int // of the items, by what they are about
	asked      int           // the place of the instance's own, and one
	activities int
	scheduled  map[int64]history.Event
	name       string
}

func (l *cancelLog) add(e *history.Event) {
	switch e.Kind {
	case history.OrchestrationStarted:
		l.name, l.scheduled, l.places = e.Name, map[int64]history.Event{}, map[int64]int{}
	case history.ActivityScheduled, history.SubOrchestrationScheduled:
		l.scheduled[e.ID] = history.Event{Name: e.Name, InstanceID: e.InstanceID, Cancel: e.Cancel}
	case history.CancelRequested:
		if l.asked == 0 {
			l.decided(e, e.ID, TargetInstance)
			l.asked = len(l.items)
		}
	case history.ActivityCancelRequested:
		l.decidedAll(e, TargetActivity)
	case history.TimerCancelled:
		l.decidedAll(e, TargetTimer)
	case history.SubOrchestrationCancelRequested:
		l.decidedAll(e, TargetSubOrchestration)
	default:
		l.ended(e)
	}
}

func (l *cancelLog) decidedAll(e *history.Event, target CancelTarget) {
	for _, id := range e.Sources() {
		if _, there := l.places[id]; !there { // the first reason stays
			l.decided(e, id, target)
		}
	}
}

func (l *cancelLog) decided(e *history.Event, id int64, target CancelTarget) {
	c := Cancellation{
		Target: target, ID: id, Name: l.scheduled[id].Name, ChildID: l.scheduled[id].InstanceID,
		Reason: e.Reason, Message: e.Message, RequestedBy: e.RequestedBy, DecidedAt: e.Time,
	}
	switch target {
	case TargetInstance:
		c.Name = l.name
	case TargetTimer:
		c.End, c.EndedAt = EndNeverFires, e.Time
	case TargetActivity:
		l.activities++
	case TargetSubOrchestration:
	}
	l.places[id] = len(l.items)
	l.items = append(l.items, c)
}

// ended takes what came of something that was cancelled before.
func (l *cancelLog) ended(e *history.Event) {
	place, about := l.places[e.SourceEventID]
	if e.Kind.Terminal() {
		place, about = l.asked-1, l.asked > 0
	}
	if !about {
		return
	}
	c := &l.items[place]
	switch e.Kind {
	case history.ActivityCompleted, history.SubOrchestrationCompleted, history.OrchestrationCompleted:
		c.End = EndFinished
	case history.ActivityFailed:
		c.End = l.failedAs(e)
	case history.OrchestrationCancelled:
		c.End = EndCancelled
	case history.SubOrchestrationCancelFailed:
		if c.End != "" {
			return // how it ended says more
		}
		c.End, c.Error = EndRefused, e.Error
	case history.SubOrchestrationFailed:
		c.End = EndFailed
		if e.Error != nil && e.Error.Type == history.TypeCancelled {
			c.End = EndCancelled
		}
	case history.OrchestrationFailed, history.OrchestrationTerminated, history.OrchestrationContinuedAsNew:
		c.End = EndFailed
	default:
		return
	}
	c.EndedAt = e.Time
	if e.Cancel != nil && e.Cancel.SeenAt != nil {
		c.SeenAt = *e.Cancel.SeenAt
	}
}

// failedAs is how an activity ended that was cancelled, by the failure that history has of it.
func (l *cancelLog) failedAs(e *history.Event) CancelEnd {
	if from := l.scheduled[e.SourceEventID]; !from.Waits() {
		return EndStopped
	}
	switch history.EndOf(e) {
	case history.EndNeverBegan:
		return EndNeverStarted
	case history.EndGivenUp:
		return EndLeaked
	case history.EndWorkerGone:
		return EndWorkerGone
	case history.EndTimedOut:
		return EndTimedOut
	default:
		return EndStopped
	}
}

// witness takes what a worker has left: it was there, and history heard of it later.
func (l *cancelLog) witness(r *provider.ActivityRecord) {
	place, cancelled := l.places[r.ActivityID]
	if !cancelled || r.End == "" {
		return
	}
	c := &l.items[place]
	if r.End == provider.EndNeverStarted && c.End != "" {
		return // in the delivery that found it cancelled: how it ended before, history tells
	}
	c.SeenAt, c.EndedAt, c.End = r.SeenAt, r.EndedAt, CancelEnd(r.End)
}
