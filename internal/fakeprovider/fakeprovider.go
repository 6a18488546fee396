package fakeprovider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Provider is a hub in memory. Its embedded provider.Provider is nil, so call only the methods that it implements
// itself. It is safe for concurrent use.
type Provider struct {
	provider.Provider

	now func() time.Time

	mu         sync.Mutex
	builds     []provider.Build
	instances  map[string]provider.Instance         // by instance id
	executions map[string][]provider.Execution      // by instance id, the oldest first
	events     map[string][]history.Event           // by execution id
	lives      map[[2]string]bool                   // instance and start id of what is deleted
	left       map[string][]provider.ActivityRecord // by execution id
	retries    map[string][]provider.ActivityRetry  // by execution id
	workers    map[string]time.Time                 // by queue
	damaged    map[string]error                     // by execution id
	failure    error
	reads      int
	sent       []provider.Message
	jobs       []provider.Job
	schedules  map[string]time.Time
	locks      map[string]provider.Renewal  // by receipt handle
	handed     map[string]provider.WorkItem // by token
	answer     func(provider.QueryRequest) (json.RawMessage, error)
	update     func(provider.Message) *provider.UpdateResult
	updates    map[string]provider.UpdateResult // by instance id and update id
}

var _ provider.Provider = (*Provider)(nil)

// New returns an empty hub with these orchestrations. now is its clock.
func New(now func() time.Time, orchestrations ...string) *Provider {
	b := provider.Build{ID: "test", Orchestrations: map[string][]string{}}
	for _, name := range orchestrations {
		b.Orchestrations[name] = []string{"1.0.0"}
	}
	return &Provider{
		now: now, builds: []provider.Build{b},
		instances: map[string]provider.Instance{}, executions: map[string][]provider.Execution{}, lives: map[[2]string]bool{}, events: map[string][]history.Event{}, damaged: map[string]error{}, left: map[string][]provider.ActivityRecord{}, retries: map[string][]provider.ActivityRetry{},
	}
}

// FailWith makes every later call fail with err, until FailWith(nil).
func (p *Provider) FailWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// AnswerWith sets the function that runs queries.
func (p *Provider) AnswerWith(answer func(provider.QueryRequest) (json.RawMessage, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// QueryInstance implements provider.Querier. It returns provider.ErrQueriesUnsupported unless AnswerWith was called.
func (p *Provider) QueryInstance(_ context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failure != nil:
		return nil, p.failure
	case p.answer == nil:
		return nil, provider.ErrQueriesUnsupported
	}
	return p.answer(q)
}

// Reads returns the number of calls of ReadInstance.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// Damage makes every read of an execution's history fail with err.
func (p *Provider) Damage(executionID string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged[executionID] = err
}

// Append adds events to the history of an instance, sets their IDs, and updates its status accordingly. An
// OrchestrationContinuedAsNew starts the next execution with the event's input, and a generated execution ID if the
// event has none. Later events belong to that execution. Append panics if the instance does not exist.
func (p *Provider) Append(instanceID string, events ...history.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.instance(instanceID)
	for _, e := range events {
		e.ID = int64(len(p.events[in.ExecutionID])) + 1
		in.UpdatedAt, in.Status, in.Diagnosis = e.Time, statusAfter(in.Status, e.Kind), nil
		switch {
		case e.Kind == history.ExecutionSuspended:
			in.Paused = &history.Pause{By: e.RequestedBy, Message: e.Message, At: e.Time}
		case in.Status != provider.StatusPaused:
			in.Paused = nil
		}
		if in.Status == provider.StatusBlocked {
			in.Diagnosis = e.Error
		}
		if e.Kind == history.TurnStarted {
			in.Version = e.Version
		}
		ended := in.ExecutionID
		if e.Kind == history.OrchestrationContinuedAsNew {
			in.ExecutionID, in.ExecutionNumber = cmp.Or(e.ExecutionID, p.nextExecutionID()), in.ExecutionNumber+1
			p.beginExecution(in, e.Time, e.Input)
			e.ExecutionID, e.Input = in.ExecutionID, nil
		}
		p.events[ended] = append(p.events[ended], e)
	}
	p.instances[instanceID] = in
}

// statusAfter is the status that an event leaves an instance with: one that has been asked to end stays so until its execution
// is over.
func statusAfter(before provider.RuntimeStatus, k history.Kind) provider.RuntimeStatus {
	s, ended := history.StatusAfter(k)
	switch {
	case ended:
		return s
	case k == history.ExecutionSuspended, before == provider.StatusPaused && k == history.InputsParked:
		return provider.StatusPaused
	case k == history.InputsParked:
		return provider.StatusBlocked
	case k == history.CancelRequested, before == provider.StatusCancelling && !k.Terminal():
		return provider.StatusCancelling
	default:
		return provider.StatusRunning
	}
}

// SetParent makes an instance the child of another.
func (p *Provider) SetParent(instanceID string, parent history.Parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.instance(instanceID)
	in.Parent = &parent
	p.instances[instanceID] = in
}

func (p *Provider) instance(instanceID string) provider.Instance {
	in, ok := p.instances[instanceID]
	if !ok {
		panic("fakeprovider: no instance " + instanceID)
	}
	return in
}

func (p *Provider) nextExecutionID() string { return fmt.Sprintf("x%d", len(p.events)+1) }

// beginExecution makes the first event of the instance's current execution.
func (p *Provider) beginExecution(in provider.Instance, at time.Time, input history.Payload) *history.Event {
	started := history.Event{
		ID: 1, Kind: history.OrchestrationStarted, Time: at, Name: in.Name, Version: in.Version, Input: input,
		StartID: in.StartID, Number: in.ExecutionNumber, Tags: in.Tags, Parent: in.Parent,
	}
	if in.ExecutionNumber == 1 {
		started.RequestedBy = in.RequestedBy
	}
	if !in.StartAt.IsZero() {
		started.StartAt = &in.StartAt
	}
	p.events[in.ExecutionID] = []history.Event{started}
	x := provider.Execution{ExecutionID: in.ExecutionID, Number: in.ExecutionNumber, StartedAt: at}
	p.executions[in.InstanceID] = append(p.executions[in.InstanceID], x)
	return &p.events[in.ExecutionID][0]
}

// StartOrchestration implements provider.Instances.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Instance{}, err
	}
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.builds, func(b provider.Build) bool { return knows(b, s.Name, s.Version) }) {
		return provider.Instance{}, fmt.Errorf("fake: instance %q: %w", s.InstanceID, provider.ErrUnknownOrchestration)
	}
	if p.lives[[2]string{s.InstanceID, s.StartID}] {
		return provider.Instance{}, fmt.Errorf("fake: %w", provider.NewAlreadyExistsError(s.InstanceID, &provider.Instance{}, provider.ErrPurged))
	}
	if old, ok := p.instances[s.InstanceID]; ok {
		if old.StartID == s.StartID {
			return old, nil
		}
		return old, fmt.Errorf("fake: %w", provider.NewAlreadyExistsError(s.InstanceID, &old, provider.ErrAlreadyExists))
	}
	now := p.now().UTC()
	in := provider.Instance{
		InstanceID: s.InstanceID, ExecutionID: p.nextExecutionID(), ExecutionNumber: 1, Name: s.Name, Version: s.Version,
		Status: provider.StatusPending, StartID: s.StartID, CreatedAt: now, UpdatedAt: now, StartAt: s.StartAt, Tags: maps.Clone(s.Tags),
		RequestedBy: history.Requester(s.RequestedBy),
	}
	p.instances[s.InstanceID] = in
	p.beginExecution(in, now, s.Input).TraceParent = s.TraceParent
	if s.RestartFrom != nil {
		p.events[in.ExecutionID] = s.RestartFrom.InitialEvents(&in, s.TraceParent)
	}
	return in, nil
}

// PutBuild implements provider.Instances.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	p.builds = append(p.builds, b)
	return nil
}

// ReadBuild implements provider.Instances.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Build{}, err
	}
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.builds, func(b provider.Build) bool { return b.ID == id })
	if i < 0 {
		return provider.Build{}, provider.ErrNotFound
	}
	return p.builds[i], nil
}

// ReadInstance implements provider.Instances.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if err := p.begin(ctx); err != nil {
		return provider.Instance{}, err
	}
	defer p.mu.Unlock()
	p.reads++
	in, ok := p.instances[instanceID]
	if !ok {
		return in, fmt.Errorf("fake: instance %q: %w", instanceID, provider.ErrNotFound)
	}
	return in, nil
}

// DeleteInstance implements provider.Instances. It deletes immediately: no instance has the status Deleting.
func (p *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	in, ok := p.instances[instanceID]
	switch {
	case !ok:
		return fmt.Errorf("fake: instance %q: %w", instanceID, provider.ErrNotFound)
	case !in.Status.Terminal() && !force:
		return fmt.Errorf("fake: instance %q is %s: %w", instanceID, in.Status, provider.ErrNotEnded)
	}
	for _, x := range p.executions[instanceID] {
		p.events[x.ExecutionID] = nil // its id stays taken
	}
	p.lives[[2]string{instanceID, in.StartID}] = true
	delete(p.instances, instanceID)
	delete(p.executions, instanceID)
	return nil
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

// ReadTerminalEvent implements provider.Instances.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	if err := p.begin(ctx); err != nil {
		return history.Event{}, err
	}
	defer p.mu.Unlock()
	events := p.events[executionID]
	if n := len(events); n > 0 && events[n-1].Kind.Terminal() {
		return events[n-1], nil
	}
	return history.Event{}, fmt.Errorf("fake: execution %s: %w", executionID, provider.ErrNotFound)
}

// ReadHistory implements provider.Instances.
func (p *Provider) ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(history.Event{}, err)
			return
		}
		events := slices.Clone(p.events[executionID])
		its := slices.ContainsFunc(p.executions[instanceID], func(x provider.Execution) bool { return x.ExecutionID == executionID })
		damage := p.damaged[executionID]
		p.mu.Unlock()
		if damage != nil {
			yield(history.Event{}, damage)
			return
		}
		if !its {
			yield(history.Event{}, fmt.Errorf("fake: instance %q: execution %s: %w", instanceID, executionID, provider.ErrNotFound))
			return
		}
		for i := range events {
			if events[i].ID <= after {
				continue
			}
			e := events[i]
			e.CarriedEvents, e.Inputs = slices.Clone(e.CarriedEvents), slices.Clone(e.Inputs)
			err := provider.ResolveReferences(ctx, p, instanceID, &e)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// ReadDocument implements provider.Orchestrations for events that were added with Append. It ignores the segment of a
// reference.
func (p *Provider) ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	at, err := history.ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	doc, found := at.DocumentIn(p.events[at.ExecutionID])
	if !found {
		return nil, fmt.Errorf("fake: instance %q: document at %s: %w", instanceID, ref.Ref, provider.ErrNotFound)
	}
	if err := ref.Check(doc); err != nil {
		return nil, fmt.Errorf("fake: instance %q: %w: %w", instanceID, provider.ErrCorrupt, err)
	}
	return doc, nil
}

// ListExecutions implements provider.Instances.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		if _, err := p.ReadInstance(ctx, instanceID); err != nil {
			yield(provider.Execution{}, err)
			return
		}
		p.mu.Lock()
		executions := slices.Clone(p.executions[instanceID])
		p.mu.Unlock()
		for _, x := range slices.Backward(executions) {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// begin locks the hub for one call, unless the call fails.
func (p *Provider) begin(ctx context.Context) error {
	p.mu.Lock()
	err := p.failure
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.mu.Unlock()
		return err
	}
	return nil
}

func knows(b provider.Build, name, version string) bool {
	versions, ok := b.Orchestrations[name]
	return ok && (version == "" || slices.Contains(versions, version))
}

// EnqueueForOrchestrator stores the messages for Sent.
func (p *Provider) EnqueueForOrchestrator(_ context.Context, ms ...provider.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	p.sent = append(p.sent, ms...)
	for i := range ms {
		p.takeUpdate(&ms[i])
	}
	return nil
}

// Sent returns the messages that were sent to inboxes.
func (p *Provider) Sent() []provider.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}
