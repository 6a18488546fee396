package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// spared holds the outputs of an execution that need not be sent.
type spared struct {
	ids map[int64]bool
	// leftOut is the number of detached starts and events for other instances among them that may not have arrived.
	leftOut int
	// takenOver is the last event that the execution copied from another one. Its restart decided which outputs of
	// these events to send.
	takenOver int64
	// old holds the starts of awaited children that are so old that the child could run twice.
	old []*history.Event
}

func (u *spared) has(id int64) bool { return u.ids[id] }

// unsentBefore finds the outputs that need not be sent: settled ones, and detached starts, events for other instances
// and responses to updates from before a time. It also finds starts of children from before MaxReconcileLookback.
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
				u.ids[e.ID] = true // the execution does not wait for it any more
			case e.Kind == history.SubOrchestrationScheduled && e.Time.Before(forgotten) && !u.ids[e.ID]:
				u.ids[e.ID] = true
				u.old = append(u.old, e)
			}
		}
	}
	return u
}

// takeOver omits outputs that another execution sent before its history was copied, and outputs that nothing waits for.
// The execution itself sends only outputs that it waits for, and responses to updates, whose IDs are valid here too.
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

// seeToOld checks the children of old starts. An existing child needs nothing. A missing child may have been purged,
// with an expired tombstone: a new start could run ended work again. seeToOld therefore makes the start impossible and
// notifies the parent. If another instance has the ID, it sends the start, which is rejected with a response.
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
	return awscall.Parallel(looks...)
}

func (p *Provider) seeToOne(ctx context.Context, x provider.Origin, e *history.Event) (refused, lost bool, err error) {
	it, err := p.instances.GetRaw(ctx, e.InstanceID, provider.Strong)
	switch {
	case err != nil:
		return false, false, err
	case len(it) > 0 && !instances.IsTombstone(it):
		return table.GetString(it, table.AttrStartID) != e.StartID, false, nil
	case !instances.MustNotStart(it, e.StartID):
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
	return false, true, p.inbox.Send(ctx, answer)
}

// lostOutcome returns the failure for a parent of a child whose outcome is unknown.
func lostOutcome(it table.Item, instanceID, startID string) *history.Failure {
	f := &history.Failure{Type: history.TypeOutcomeLost, NonRetryable: true}
	if instances.IsDeletedStart(it, startID) {
		f.Message = fmt.Sprintf("instance %q was purged before its outcome arrived", instanceID)
	} else {
		f.Message = fmt.Sprintf("instance %q not found, and its start is too old to tell whether it ran", instanceID)
	}
	return f
}
