package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// spared is what need not be sent of what an execution has caused.
type spared struct {
	ids map[int64]bool
	// leftOut is how many detached starts and events for other instances are among them that may not have arrived.
	leftOut int
	// takenOver is the last event that the execution has taken over from another: what is to be sent of these was decided by its restart.
	takenOver int64
	// old are the starts of children that are waited for, from so long ago that nothing may be left which keeps them from happening again.
	old []*history.Event
}

func (u *spared) has(id int64) bool { return u.ids[id] }

// unsentBefore finds what is settled, detached starts, events for other instances and answers to updates from before a time, and starts of children
// from before MaxReconcileLookback.
func (p *Provider) unsentBefore(o *provider.Orchestration, since time.Time) spared {
	u := spared{ids: o.State(history.TrackOpen | history.TrackSettled).SettledSet()}
	forgotten := p.now().Add(-provider.MaxReconcileLookback)
	u.takeOver(o.RestartedEvents())
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			switch e := &o.Segments[i].Events[j]; {
			case e.ID <= u.takenOver:
			case e.Kind == history.DetachedOrchestrationScheduled && e.Time.Before(since),
				(e.Kind == history.ExternalEventSent || e.Kind == history.UpdateSent) && e.Time.Before(since) && !u.ids[e.ID]:
				u.ids[e.ID] = true
				u.leftOut++
			case (e.Kind == history.UpdateCompleted || e.Kind == history.UpdateRejected) && e.Time.Before(since):
				u.ids[e.ID] = true // nobody waits for it any more
			case e.Kind == history.SubOrchestrationScheduled && e.Time.Before(forgotten) && !u.ids[e.ID]:
				u.ids[e.ID] = true
				u.old = append(u.old, e)
			}
		}
	}
	return u
}

// takeOver leaves out what another execution has sent before its history was taken over, and what nobody waits for: only what the execution
// itself waits for is its own to send, and answers to updates, whose ids are over here too.
func (u *spared) takeOver(taken []history.Event) {
	for i := range taken {
		e := &taken[i]
		u.takenOver = e.ID
		switch e.Kind {
		case history.DetachedOrchestrationScheduled, history.SubOrchestrationCancelRequested, history.ExternalEventRaised, history.InputsParked:
			u.ids[e.ID] = true
		default:
		}
	}
}

// seeToOld looks for the children of old starts. One that is there needs nothing. One that is not may have been purged, and its tombstone be
// gone: to start it might run again what was over, so its start may never happen any more, and the parent is told. A start that the
// id of another instance refuses is sent, and answered.
func (p *Provider) seeToOld(ctx context.Context, x provider.Origin, u *spared, out *provider.ReconcileResult) error {
	var mu sync.Mutex
	looks := make([]func() error, len(u.old))
	for i, e := range u.old {
		looks[i] = func() error {
			refused, lost, err := p.seeToOne(ctx, x, e)
			mu.Lock()
			defer mu.Unlock()
			if refused {
				delete(u.ids, e.ID)
			}
			if lost {
				out.LostChildren++
				out.Sent++
			}
			return err
		}
	}
	return together(looks...)
}

func (p *Provider) seeToOne(ctx context.Context, x provider.Origin, e *history.Event) (refused, lost bool, err error) {
	it, err := p.rawInstance(ctx, e.InstanceID, provider.Strong)
	switch {
	case err != nil:
		return false, false, err
	case len(it) > 0 && !isTombstone(it):
		return getString(it, attrStartID) != e.StartID, false, nil
	case !mayNeverStart(it, e.StartID):
		err := p.neverStart(ctx, &provider.Message{InstanceID: e.InstanceID, StartID: e.StartID})
		if errors.Is(err, provider.ErrConflict) {
			err = &provider.Error{Op: "DynamoDB.UpdateItem", InstanceID: e.InstanceID, Retryable: true, Err: err}
		}
		if err != nil {
			return false, false, err
		}
	}

	answer := provider.ChildOutcome(e.InstanceID, &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID})
	answer.Error = lostOutcome(it, e.InstanceID, e.StartID)
	return false, true, p.EnqueueForOrchestrator(ctx, answer)
}

// lostOutcome is what a parent is told of a child whose outcome nobody knows any more.
func lostOutcome(it item, instanceID, startID string) *history.Failure {
	f := &history.Failure{Type: history.TypeOutcomeLost, NonRetryable: true}
	if wasALife(it, startID) {
		f.Message = fmt.Sprintf("instance %q was purged before its outcome arrived", instanceID)
	} else {
		f.Message = fmt.Sprintf("instance %q not found, and its start is too old to tell whether it ran", instanceID)
	}
	return f
}
