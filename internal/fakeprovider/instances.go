package fakeprovider

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/outputs"
)

// ReadInstance implements provider.Instances.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Instance{}, err
	}
	defer p.mu.Unlock()
	p.reads++
	in, err := p.instance(instanceID)
	if err != nil {
		return provider.Instance{}, err
	}
	return in.Instance, nil
}

// ReadTerminalEvent implements provider.Instances.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	if err := p.begin(ctx); err != nil {
		return history.Event{}, err
	}
	defer p.mu.Unlock()
	if x := p.executions[executionID]; x != nil && !x.erased {
		events := x.segments[len(x.segments)-1].Events
		if last := events[len(events)-1]; last.Kind.Terminal() {
			return last, nil
		}
	}
	return history.Event{}, fmt.Errorf("fake: execution %s: %w", executionID, provider.ErrNotFound)
}

// ReadHistory implements provider.Instances.
func (p *Provider) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		events, err := p.readEvents(ctx, instanceID, executionID)
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		for _, e := range events {
			if e.ID <= after {
				continue
			}
			err := documents.Resolve(ctx, p, instanceID, &e)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (p *Provider) readEvents(ctx context.Context, instanceID, executionID string) ([]history.Event, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	if err := p.damaged[executionID]; err != nil {
		return nil, err
	}
	x := p.executions[executionID]
	if x == nil || x.erased || x.instanceID != instanceID {
		return nil, fmt.Errorf("fake: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound)
	}
	return x.events(), nil
}

// ListExecutions implements provider.Instances.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		if _, err := p.ReadInstance(ctx, instanceID); err != nil {
			yield(provider.Execution{}, err)
			return
		}
		all := sequence(ctx, p, func() (all []provider.Execution) {
			if in, err := p.instance(instanceID); err == nil {
				for _, x := range slices.Backward(in.executions) {
					all = append(all, x.Execution)
				}
			}
			return all
		})
		all(yield)
	}
}

// fieldCursor is the name of a field in errors.
const fieldCursor = "cursor"

// The limits of pages.
const (
	defaultPage = 100
	maxPage     = 1000
)

// ListInstances implements provider.Instances. A cursor consists of the query, and the time and the ID of the last
// instance of the page.
func (p *Provider) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Page{}, err
	}
	defer p.mu.Unlock()
	if q.Limit < 0 || q.Limit > maxPage {
		problem := fmt.Sprintf("must be from 1 to %d", maxPage)
		return provider.Page{}, &provider.FieldError{Field: "limit", Problem: problem}
	}
	filter := fmt.Sprintf("%s,%s,%s,%s,%v,%d,%d", q.Status, q.Name, q.Version, q.Parent, q.Tags,
		q.StartedAfter.UnixMilli(), q.StartedBefore.UnixMilli())
	found := p.selected(&q)
	if q.Cursor != "" {
		at, id, err := parseCursor(q.Cursor, filter)
		if err != nil {
			return provider.Page{}, err
		}
		last := provider.Instance{InstanceID: id, CreatedAt: at, UpdatedAt: at}
		found = slices.DeleteFunc(found, func(in provider.Instance) bool { return newestFirst(&q)(in, last) <= 0 })
	}
	limit := cmp.Or(q.Limit, defaultPage)
	if len(found) <= limit {
		return provider.Page{Instances: found}, nil
	}
	last := &found[limit-1]
	next := fmt.Sprintf("%q %d %s", filter, sortTime(&q, last).UnixNano(), last.InstanceID)
	return provider.Page{Instances: found[:limit], NextCursor: base64.RawURLEncoding.EncodeToString([]byte(next))}, nil
}

// parseCursor returns the position in a cursor of a list with the filter.
func parseCursor(cursor, filter string) (at time.Time, instanceID string, err error) {
	text, _ := base64.RawURLEncoding.Strict().DecodeString(cursor)
	quoted, err := strconv.QuotedPrefix(string(text))
	rest, hasPlace := strings.CutPrefix(strings.TrimPrefix(string(text), quoted), " ")
	nanos, id, hasID := strings.Cut(rest, " ")
	n, bad := strconv.ParseInt(nanos, 10, 64)
	switch {
	case err != nil || strings.ContainsAny(cursor, "\r\n") || !hasPlace || !hasID || bad != nil || id == "":
		return at, "", &provider.FieldError{Field: fieldCursor, Problem: "does not belong to a list of instances"}
	case quoted != strconv.Quote(filter):
		return at, "", &provider.FieldError{Field: fieldCursor, Problem: "belongs to a list with another filter"}
	}
	return time.Unix(0, n).UTC(), id, nil
}

// sortTime returns the time by which a list is sorted.
func sortTime(q *provider.ListQuery, in *provider.Instance) time.Time {
	switch q.Status {
	case provider.StatusBlocked, provider.StatusPaused, provider.StatusDeleting:
		return in.UpdatedAt
	default:
		return in.CreatedAt
	}
}

// newestFirst returns the order of a list.
func newestFirst(q *provider.ListQuery) func(a, b provider.Instance) int {
	return func(a, b provider.Instance) int {
		return cmp.Or(sortTime(q, &b).Compare(sortTime(q, &a)), strings.Compare(a.InstanceID, b.InstanceID))
	}
}

// selected returns the instances that a query selects, as lists contain them.
func (p *Provider) selected(q *provider.ListQuery) []provider.Instance {
	var found []provider.Instance
	for _, id := range p.identities {
		if id.instance != nil && q.Selects(&id.instance.Instance) {
			found = append(found, id.instance.Instance)
		}
	}
	slices.SortFunc(found, newestFirst(q))
	return found
}

// DeleteInstance implements provider.Instances. It deletes immediately: no instance has the status Deleting.
func (p *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	in, err := p.instance(instanceID)
	switch {
	case err != nil:
		return err
	case !in.Status.Terminal() && !force:
		return fmt.Errorf("fake: instance %q is %s: %w", instanceID, in.Status, provider.ErrNotEnded)
	case !in.Status.Terminal():
		p.endForDeletion(ctx, in)
	}
	id := p.identities[instanceID]
	last := in.current().segments
	id.instance, id.purgedAt, id.watermark = nil, p.time(), last[len(last)-1].Watermark
	id.spent[in.StartID] = true
	for _, x := range in.executions {
		x.erase(p.now())
		delete(p.facts, x.ExecutionID)
	}
	for key, r := range p.updates {
		if r.InstanceID == instanceID {
			delete(p.updates, key)
		}
	}
	return nil
}

// endForDeletion ends a running execution, unless it has ended already, and sends what its last turns cause for others.
func (p *Provider) endForDeletion(ctx context.Context, in *instance) {
	x := in.current()
	state := x.state(history.TrackOpen)
	if !state.Ended() {
		last := x.segments[len(x.segments)-1]
		cancels := state.CancelOutstanding(history.ReasonInstanceDeleted)
		events := provider.DeletionEvents(cancels, state.LastID, p.time())
		end := &events[len(events)-1]
		by, _ := provider.RequesterOf(ctx)
		end.RequestedBy, end.Callers = history.Requester(by), history.UnansweredCallers(state, events)
		events[0].TraceParent = x.segments[0].Events[0].TraceParent
		x.add(provider.Segment{Sequence: last.Sequence + 1, Watermark: last.Watermark, Events: events}, nil)
	}
	p.sendLast(in, x, 2) //nolint:mnd // the turn before may have died before it sent its outputs
	if previous := p.executions[x.previous]; previous != nil && len(x.segments) <= 2 {
		p.sendLast(in, previous, 1)
	}
}

// sendLast sends the outputs of the last n segments of an execution that has ended again.
func (p *Provider) sendLast(in *instance, x *execution, n int) {
	origin := outputs.Origin{
		InstanceID: in.InstanceID, ExecutionID: x.ExecutionID, StartID: in.StartID, Parent: in.Parent, Ended: true,
	}
	const messageLife = 14 * 24 * time.Hour
	for _, s := range x.segments[max(0, len(x.segments)-n):] {
		old := map[int64]bool{}
		for i := range s.Events {
			e := &s.Events[i]
			outlives := e.Kind == history.DetachedOrchestrationScheduled || e.Kind == history.ExternalEventSent ||
				e.Kind == history.UpdateSent
			old[e.ID] = outlives && p.now().Sub(e.Time) >= messageLife
		}
		p.sendOutputs(outputs.Of(origin, s, func(id int64) bool { return old[id] }))
	}
}

// DeleteIncarnation implements provider.Instances.
func (p *Provider) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	in, err := p.ReadInstance(ctx, instanceID)
	if errors.Is(err, provider.ErrNotFound) || err == nil && in.StartID != startID {
		return nil
	}
	if err != nil {
		return err
	}
	return p.DeleteInstance(ctx, instanceID, force)
}
