package fakeprovider

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

// StartOrchestration implements provider.Instances.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Instance{}, err
	}
	defer p.mu.Unlock()
	if !p.registered(s.Name, s.Version) {
		p.askForReport()
		return provider.Instance{}, fmt.Errorf("fake: instance %q: %w: %q %s", s.InstanceID,
			provider.ErrUnknownOrchestration, s.Name, s.Version)
	}
	now := p.time()
	in := provider.Instance{
		InstanceID: s.InstanceID, ExecutionID: cmp.Or(s.ExecutionID, p.nextExecutionID()), ExecutionNumber: 1,
		Name: s.Name, Version: s.Version, Status: provider.StatusPending, StartID: s.StartID, CreatedAt: now,
		UpdatedAt: now, StartAt: s.StartAt, Tags: maps.Clone(s.Tags), RequestedBy: history.Requester(s.RequestedBy),
	}
	events := firstEvents(&in, s.Input, s.TraceParent)
	if s.RestartFrom != nil {
		events = s.RestartFrom.InitialEvents(&in, s.TraceParent)
	}
	created, err := p.create(&in, provider.Segment{Events: events}, time.Time{})
	if err != nil {
		return in, err
	}
	if p.now().Before(created.StartAt) {
		p.sendTimer(&provider.Timer{
			V: provider.WireVersion, InstanceID: created.InstanceID, ExecutionID: created.ExecutionID, TimerID: 1,
			FireAt: created.StartAt,
		})
		return created.Instance, nil
	}
	p.sendMessages(provider.Message{
		Kind: provider.MessageWake, InstanceID: created.InstanceID, ExecutionID: created.ExecutionID,
	})
	return created.Instance, nil
}

// nextExecutionID returns a short ID, so that tests can name executions.
func (p *Provider) nextExecutionID() string { return fmt.Sprintf("x%d", len(p.executions)+1) }

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
func (p *Provider) create(in *provider.Instance, first provider.Segment, sentAt time.Time) (*instance, error) {
	id := p.identity(in.InstanceID)
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
	if _, err := storedEvents(in.InstanceID, first.Events); err != nil { // tests print the input as it was written
		return nil, err
	}
	in.PurgedAt = id.purgedAt
	if own := first.Watermark; own == (provider.Position{}) || id.watermark.Covers(own) {
		first.Watermark = id.watermark // positions grow over all incarnations (R3)
	}
	id.instance = &instance{Instance: *in, written: -1}
	p.addExecution(id.instance, in.ExecutionID, "", first)
	return id.instance, nil
}

// refusal returns the reason why a start must not create an instance, or nil. first is the first segment of its
// history, and sentAt is InboxMessage.PossibleDuplicateSentAt.
func (id *identity) refusal(startID string, first *provider.Segment, sentAt time.Time) error {
	brings := len(first.Events[0].Inputs) > 0
	again := brings && id.watermark.Covers(first.Watermark) ||
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

// addExecution adds an execution and makes it the current one.
func (p *Provider) addExecution(in *instance, executionID, previous string, first provider.Segment) {
	first.Events = copyEvents(first.Events)
	start := &first.Events[0]
	x := &execution{
		Execution:  provider.Execution{ExecutionID: executionID, Number: start.Number, StartedAt: start.Time},
		instanceID: in.InstanceID, previous: previous, segments: []provider.Segment{first},
	}
	p.executions[executionID] = x
	in.executions = append(in.executions, x)
	in.ExecutionID, in.ExecutionNumber = executionID, start.Number
}

// CreateOrchestration implements provider.Orchestrations.
func (p *Provider) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	now := p.time()
	in := provider.Instance{
		InstanceID: m.InstanceID, ExecutionID: cmp.Or(m.NewExecutionID, p.nextExecutionID()), ExecutionNumber: 1,
		Name: m.Name, Version: m.Version, Status: provider.StatusPending, StartID: m.StartID, CreatedAt: now,
		UpdatedAt: now, Parent: m.Parent, Tags: maps.Clone(m.Tags),
	}
	if m.StartAt != nil {
		in.StartAt = *m.StartAt
	}
	first := provider.Segment{Watermark: m.Position, Events: firstEvents(&in, m.Input, m.TraceParent)}
	first.Events[0].Inputs = copyEvents(m.InitialInputs)
	for i := range first.Events[0].Inputs {
		first.Events[0].Inputs[i].Time = now
	}
	there, err := p.create(&in, first, m.PossibleDuplicateSentAt)
	if err != nil {
		return nil, err
	}
	o := p.orchestration(there.current(), provider.Strong)
	if o.Head.Segment == 0 && o.Previous == "" { // otherwise the outputs of the start were sent before its first turn
		p.sendOutputs(outputs.Of(outputs.HistoryOrigin(o), o.Segments[0], nil))
	}
	return o, nil
}
