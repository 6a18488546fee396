package memhub

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/outputs"
)

// histories stores the executions with their segments, and their cancel decisions.
type histories struct {
	*base

	byID map[string]*execution // by execution ID, including erased ones
}

// execution is a history. Its segments are never changed.
type execution struct {
	provider.Execution

	instanceID, previous string
	segments             []provider.Segment
	decisions            []decision
	erased               bool
}

// decision contains the cancel decisions of a turn.
type decision struct {
	segment int64
	cancels provider.Cancels
}

// add adds a segment with the cancel decisions of its turn.
func (x *execution) add(s provider.Segment, cancels provider.Cancels) {
	x.segments = append(x.segments, s)
	if len(cancels) > 0 {
		x.decisions = append(x.decisions, decision{s.Sequence, slices.Clone(cancels)})
	}
}

// erase deletes the history, and cancels all activities because the instance is deleted.
func (x *execution) erase(now time.Time) {
	var cancels provider.Cancels
	for _, d := range x.decisions {
		cancels = append(cancels, d.cancels...)
	}
	x.decisions = []decision{{0, cancels.WithDeletion(now)}}
	x.segments, x.erased = nil, true
}

// events returns copies of the events of all segments.
func (x *execution) events() (all []history.Event) {
	for i := range x.segments {
		all = append(all, copyEvents(x.segments[i].Events)...)
	}
	return all
}

// state returns the state of the execution.
func (x *execution) state(keep history.Tracking) *history.State {
	return (&provider.Orchestration{Segments: x.segments}).State(keep)
}

// copyEvents returns a copy of events that shares only their documents, which never change.
func copyEvents(events []history.Event) []history.Event {
	all := slices.Clone(events)
	for i := range all {
		all[i].CarriedEvents = slices.Clone(all[i].CarriedEvents)
		all[i].Inputs = slices.Clone(all[i].Inputs)
	}
	return all
}

// orchestration returns the history in the form in which turns read it.
func (x *execution) orchestration(c provider.Consistency) *provider.Orchestration {
	o := &provider.Orchestration{
		InstanceID: x.instanceID, Previous: x.previous, Verified: c == provider.Strong,
		Segments: slices.Clone(x.segments),
	}
	budget := documents.Budget{ExecutionID: x.ExecutionID}
	for i := range o.Segments {
		o.Segments[i].Events = copyEvents(o.Segments[i].Events)
		budget.Add(&o.Segments[i])
	}
	last := &o.Segments[len(o.Segments)-1]
	o.Head = provider.Head{ExecutionID: x.ExecutionID, Segment: last.Sequence, Watermark: last.Watermark}
	return o
}

// nextExecutionID returns a short ID, so that tests can name executions.
func (st *histories) nextExecutionID() string { return fmt.Sprintf("x%d", len(st.byID)+1) }

// ReadTerminalEvent implements provider.Instances.
func (st *histories) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	return callFor(ctx, st.base, func() (history.Event, error) {
		if x := st.byID[executionID]; x != nil && !x.erased {
			events := x.segments[len(x.segments)-1].Events
			if last := events[len(events)-1]; last.Kind.Terminal() {
				return last, nil
			}
		}
		return history.Event{}, fmt.Errorf("fake: execution %s: %w", executionID, provider.ErrNotFound)
	})
}

// ReadHistory implements provider.Instances.
func (st *histories) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		events, err := st.readEvents(ctx, instanceID, executionID)
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		for _, e := range events {
			if e.ID <= after {
				continue
			}
			err := documents.Resolve(ctx, st, instanceID, &e)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (st *histories) readEvents(ctx context.Context, instanceID, executionID string) ([]history.Event, error) {
	return callFor(ctx, st.base, func() ([]history.Event, error) {
		x := st.byID[executionID]
		if x == nil || x.erased || x.instanceID != instanceID {
			return nil, fmt.Errorf("fake: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
		}
		return x.events(), nil
	})
}

// ReadDocument implements provider.Orchestrations.
func (st *histories) ReadDocument(
	ctx context.Context, instanceID string, ref history.Reference,
) (json.RawMessage, error) {
	return callFor(ctx, st.base, func() (json.RawMessage, error) {
		at, err := history.ParseDataLocation(ref.Ref)
		if err != nil {
			return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
		}
		x := st.byID[at.ExecutionID]
		if x == nil || x.erased || at.Segment < 0 || at.Segment >= int64(len(x.segments)) {
			return nil, fmt.Errorf("fake: instance %q: document at %s: %w", instanceID, ref.Ref, provider.ErrNotFound)
		}
		doc, found := at.DocumentIn(x.segments[at.Segment].Events)
		if !found {
			err = fmt.Errorf("no document at %s", ref.Ref)
		} else {
			err = ref.Check(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
		}
		return doc, nil
	})
}

// ReadSettled implements provider.Activities.
func (st *histories) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	s := provider.Settlements{Next: from}
	if err := st.begin(ctx); err != nil {
		return s, err
	}
	defer st.mu.Unlock()
	x := st.byID[executionID]
	switch {
	case x == nil:
	case x.erased:
		s.Ended, s.Deleted = true, true
	default:
		for i := from; i < int64(len(x.segments)); i++ {
			s.Apply(&x.segments[i])
		}
	}
	return s, nil
}

// ReadCancels implements provider.Activities.
func (st *histories) ReadCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	if err := st.begin(ctx); err != nil {
		return nil, from, err
	}
	defer st.mu.Unlock()
	cancels, next := st.cancelsSince(executionID, from)
	return cancels, next, nil
}

// PollCancels implements provider.Activities.
func (st *histories) PollCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	return st.ReadCancels(ctx, executionID, from)
}

// cancelsSince returns the decisions of the given segment and all later ones, and the open decisions of earlier
// segments.
func (st *histories) cancelsSince(executionID string, from int64) (cancels provider.Cancels, next int64) {
	next = max(from, 0)
	x := st.byID[executionID]
	if x == nil {
		return nil, next
	}
	for _, d := range x.decisions {
		for i := range d.cancels {
			if d.segment >= from || d.cancels[i].All {
				cancels = append(cancels, d.cancels[i])
			}
		}
		next = max(next, d.segment+1)
	}
	return cancels, next
}

// ReadWorkItem implements provider.Completions.
func (st *histories) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	return callFor(ctx, st.base, func() (provider.WorkItem, error) {
		return st.workItem(instanceID, executionID, segment, activityID)
	})
}

// workItem returns the work item of an activity's first attempt.
func (st *histories) workItem(instanceID, executionID string, segment, activityID int64) (provider.WorkItem, error) {
	if x := st.byID[executionID]; x != nil && !x.erased && 0 <= segment && segment < int64(len(x.segments)) {
		origin := outputs.Origin{InstanceID: instanceID, ExecutionID: executionID}
		out := outputs.Of(origin, x.segments[segment], nil)
		for i := range out.WorkItems {
			if out.WorkItems[i].ActivityID == activityID {
				return out.WorkItems[i], nil
			}
		}
	}
	return provider.WorkItem{}, fmt.Errorf("fake: instance %q: execution %s: activity #%d: %w", instanceID, executionID,
		activityID, provider.ErrNotFound)
}
