package memhub

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// rejections stores the messages that no instance accepts, and the results of updates (provider.Rejections).
type rejections struct {
	*base

	instances *instances
	inbox     *inbox
	results   map[string]provider.UpdateResult // by instance ID and update ID
}

// RejectStart implements provider.Rejections.
func (st *rejections) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	return st.call(ctx, func() error {
		id := st.instances.identity(m.InstanceID)
		id.rejected[m.StartID] = true
		if m.Parent == nil {
			return nil
		}
		taken := provider.NewAlreadyExistsError(m.InstanceID, &provider.Instance{}, provider.ErrAlreadyExists)
		if id.instance != nil {
			taken = provider.NewAlreadyExistsError(m.InstanceID, &id.instance.Instance, provider.ErrAlreadyExists)
		}
		f := &history.Failure{Type: history.TypeAlreadyExists, NonRetryable: true, Message: taken.Error()}
		if id.spent[m.StartID] { // the start has run, and its outcome may be lost
			f = &history.Failure{Type: history.TypeOutcomeLost, NonRetryable: true}
			f.Message = fmt.Sprintf("instance %q was purged before its outcome arrived", m.InstanceID)
		}
		st.sendChildOutcome(m, f)
		return nil
	})
}

func (st *rejections) sendChildOutcome(m *provider.InboxMessage, f *history.Failure) {
	response := outputs.ChildOutcome(m.InstanceID, m.Parent)
	response.Error = f
	st.inbox.send(response)
}

// RejectCancel implements provider.Rejections.
func (st *rejections) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	return st.call(ctx, func() error {
		id := st.instances.identity(m.InstanceID)
		if id.instance != nil {
			return fmt.Errorf("fake: instance %q: %w", m.InstanceID, provider.ErrConflict)
		}
		id.rejected[m.StartID] = true
		st.sendChildOutcome(m, &history.Failure{
			Type: history.TypeCancelled, Reason: m.Reason, Message: history.TruncateCancelMessage(m.Text),
		})
		return nil
	})
}

// RejectEvents implements provider.Rejections.
func (st *rejections) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	return st.call(ctx, func() error {
		id, known := st.instances.identity(ms[0].InstanceID), true
		for _, m := range ms {
			known = known && id.events.Has(&m.Message)
		}
		if !known && id.instance != nil && (over == "" || id.instance.ExecutionID != over) {
			return fmt.Errorf("fake: instance %q: %w", ms[0].InstanceID, provider.ErrConflict)
		}
		for _, m := range ms {
			id.reject(m.Parent)
		}
		why := outputs.NotFoundFailure
		if over != "" {
			why = outputs.EndedFailure
		}
		st.inbox.send(outputs.DeliveryReplies(why(ms[0].InstanceID), ms...)...)
		return nil
	})
}

// maxSenders is the maximum number of executions whose rejected events are stored.
const maxSenders = 256

// reject stores a rejected event.
func (id *identity) reject(sender *history.Parent) {
	x, n := sender.ExecutionID, sender.EventID
	r, some := id.events[x]
	if !some {
		r = history.Range{First: n, Last: n}
	}
	if id.events == nil {
		id.events = provider.RejectedEvents{}
	}
	id.events[x] = history.Range{First: min(r.First, n), Last: max(r.Last, n)}
	id.senders = append(slices.DeleteFunc(id.senders, func(o string) bool { return o == x }), x)
	if len(id.senders) > maxSenders {
		delete(id.events, id.senders[0])
		id.senders = id.senders[1:]
	}
}

// ReadRejectedEvents implements provider.Rejections.
func (st *rejections) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	return callFor(ctx, st.base, func() (provider.RejectedEvents, error) {
		return maps.Clone(st.instances.identity(instanceID).events), nil
	})
}

// PutUpdateResults implements provider.Rejections.
func (st *rejections) PutUpdateResults(ctx context.Context, results ...provider.UpdateResult) error {
	return st.call(ctx, func() error {
		st.putUpdateResults(results)
		return nil
	})
}

func updateKey(instanceID, updateID string) string { return instanceID + "\n" + updateID }

// putUpdateResults stores new results of the current incarnation.
func (st *rejections) putUpdateResults(results []provider.UpdateResult) {
	for i := range results {
		r := &results[i]
		in, err := st.instances.find(r.InstanceID)
		if err != nil || in.StartID != r.StartID {
			continue
		}
		old, known := st.results[updateKey(r.InstanceID, r.UpdateID)]
		if !known || old.StartID != r.StartID || old.Outcome == provider.UpdateResultExpired {
			st.results[updateKey(r.InstanceID, r.UpdateID)] = *r
		}
	}
}

// ReadUpdate implements provider.Instances.
func (st *rejections) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	return callFor(ctx, st.base, func() (provider.UpdateResult, error) {
		r, known := st.results[updateKey(instanceID, updateID)]
		if !known {
			return r, fmt.Errorf("fakeprovider: update %q: %w", updateID, provider.ErrNotFound)
		}
		return r, nil
	})
}
