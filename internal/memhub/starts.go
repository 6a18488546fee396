package memhub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// starts creates instances.
type starts struct {
	*base

	builds    *builds
	histories *histories
	instances *instances
	inbox     *inbox
	timers    *timers
	outbox    *outbox
}

// StartOrchestration implements provider.Instances.
func (st *starts) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	return callFor(ctx, st.base, func() (provider.Instance, error) {
		if !st.builds.registered(s.Name, s.Version) {
			st.builds.requestReport()
			return provider.Instance{}, fmt.Errorf("fake: instance %q: %w: %q %s", s.InstanceID,
				provider.ErrUnknownOrchestration, s.Name, s.Version)
		}
		now := st.time()
		in := provider.Instance{
			InstanceID: s.InstanceID, ExecutionID: cmp.Or(s.ExecutionID, st.histories.nextExecutionID()),
			ExecutionNumber: 1, Name: s.Name, Version: s.Version, Status: provider.StatusPending, StartID: s.StartID,
			CreatedAt: now, UpdatedAt: now, StartAt: s.StartAt, Tags: maps.Clone(s.Tags),
			RequestedBy: history.Requester(s.RequestedBy),
		}
		events := firstEvents(&in, s.Input, s.TraceParent)
		if s.RestartFrom != nil {
			events = s.RestartFrom.InitialEvents(&in, s.TraceParent)
		}
		created, err := st.create(&in, provider.Segment{Events: events}, time.Time{})
		if err != nil {
			return in, err
		}
		if st.now().Before(created.StartAt) {
			st.timers.send(&provider.Timer{
				V: provider.WireVersion, InstanceID: created.InstanceID, ExecutionID: created.ExecutionID, TimerID: 1,
				FireAt: created.StartAt,
			})
			return created.Instance, nil
		}
		st.inbox.send(provider.Message{
			Kind: provider.MessageWake, InstanceID: created.InstanceID, ExecutionID: created.ExecutionID,
		})
		return created.Instance, nil
	})
}

// firstEvents returns the start of an execution.
func firstEvents(in *provider.Instance, input history.Payload, trace history.TraceParent) []history.Event {
	started := history.Event{
		ID: 1, Kind: history.OrchestrationStarted, Time: in.CreatedAt, Name: in.Name, Version: in.Version, Input: input,
		StartID: in.StartID, Number: in.ExecutionNumber, Tags: in.Tags, Parent: in.Parent, RequestedBy: in.RequestedBy,
		TraceParent: trace,
	}
	if !in.StartAt.IsZero() {
		started.StartAt = &in.StartAt
	}
	return []history.Event{started}
}

// create creates an instance with its first segment. If the same start has created the instance before, it returns that
// instance. If the start must not create an instance, it changes in to the instance that has the ID.
func (st *starts) create(in *provider.Instance, first provider.Segment, sentAt time.Time) (*instance, error) {
	id := st.instances.identity(in.InstanceID)
	if id.instance != nil && id.instance.StartID == in.StartID {
		return id.instance, nil
	}
	if why := id.refusal(in.StartID, &first, sentAt); why != nil {
		holder := provider.Instance{}
		if id.instance != nil {
			holder = id.instance.Instance
		}
		err := fmt.Errorf("fake: %w", provider.NewAlreadyExistsError(in.InstanceID, &holder, why))
		*in = holder
		return nil, err
	}
	if _, err := storedEvents(in.InstanceID, first.Events); err != nil { // tests print the input in its original form
		return nil, err
	}
	in.PurgedAt = id.purgedAt
	if own := first.Watermark; own == (provider.Position{}) || id.watermark.Covers(own) {
		first.Watermark = id.watermark // positions grow over all incarnations (R3)
	}
	id.instance = &instance{Instance: *in, written: -1}
	st.instances.addExecution(id.instance, in.ExecutionID, "", first)
	return id.instance, nil
}

// refusal returns the reason why a start must not create an instance, or nil. first is the first segment of its
// history, and sentAt is InboxMessage.PossibleDuplicateSentAt.
func (id *identity) refusal(startID string, first *provider.Segment, sentAt time.Time) error {
	hasInputs := len(first.Events[0].Inputs) > 0
	again := hasInputs && id.watermark.Covers(first.Watermark) ||
		!sentAt.IsZero() && len(id.spent) > 0 && sentAt.Before(id.purgedAt)
	switch {
	case id.spent[startID], id.instance == nil && again:
		return provider.ErrPurged
	case id.instance != nil, id.rejected[startID]:
		return provider.ErrAlreadyExists
	default:
		return nil
	}
}

// CreateOrchestration implements provider.Orchestrations.
func (st *starts) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	if err := st.begin(ctx); err != nil {
		return nil, err
	}
	defer st.mu.Unlock()
	now := st.time()
	in := provider.Instance{
		InstanceID: m.InstanceID, ExecutionID: cmp.Or(m.NewExecutionID, st.histories.nextExecutionID()),
		ExecutionNumber: 1, Name: m.Name, Version: m.Version, Status: provider.StatusPending, StartID: m.StartID,
		CreatedAt: now, UpdatedAt: now, Parent: m.Parent, Tags: maps.Clone(m.Tags),
	}
	if m.StartAt != nil {
		in.StartAt = *m.StartAt
	}
	first := provider.Segment{Watermark: m.Position, Events: firstEvents(&in, m.Input, m.TraceParent)}
	first.Events[0].Inputs = copyEvents(m.InitialInputs)
	for i := range first.Events[0].Inputs {
		first.Events[0].Inputs[i].Time = now
	}
	created, err := st.create(&in, first, m.PossibleDuplicateSentAt)
	if err != nil {
		return nil, err
	}
	o := created.current().orchestration(provider.Strong)
	if o.Head.Segment == 0 && o.Previous == "" { // otherwise the outputs of the start were sent before its first turn
		st.outbox.send(outputs.Of(outputs.HistoryOrigin(o), o.Segments[0], nil))
	}
	return o, nil
}
