package fakeprovider

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Provider is a hub in memory. Only the methods of provider.Instances may be called, from any goroutine.
type Provider struct {
	provider.Provider

	now func() time.Time

	mu        sync.Mutex
	builds    []provider.Build
	instances map[string]provider.Instance // by instance id
	events    map[string][]history.Event   // by execution id
	failure   error
	reads     int
	sent      []provider.Message
}

var _ provider.Provider = (*Provider)(nil)

// New makes an empty hub whose instances start at the time that now tells. It knows the orchestrations named.
func New(now func() time.Time, orchestrations ...string) *Provider {
	b := provider.Build{ID: "test", Orchestrations: map[string][]string{}}
	for _, name := range orchestrations {
		b.Orchestrations[name] = []string{"1.0.0"}
	}
	return &Provider{
		now: now, builds: []provider.Build{b},
		instances: map[string]provider.Instance{}, events: map[string][]history.Event{},
	}
}

// FailWith makes every later call fail with err, until FailWith(nil).
func (p *Provider) FailWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// Reads counts the calls of ReadInstance.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// Append adds events to the history of an instance, numbers them, and changes its status as they say. It panics when there
// is no such instance.
func (p *Provider) Append(instanceID string, events ...history.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, ok := p.instances[instanceID]
	if !ok {
		panic("fakeprovider: no instance " + instanceID)
	}
	for _, e := range events {
		e.ID = int64(len(p.events[in.ExecutionID])) + 1
		p.events[in.ExecutionID] = append(p.events[in.ExecutionID], e)
		in.UpdatedAt, in.Status = e.Time, provider.StatusRunning
		if e.Kind == history.TurnStarted {
			in.Version = e.Version
		}
		if s, ended := provider.StatusAfter(e.Kind); ended {
			in.Status = s
		}
	}
	p.instances[instanceID] = in
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
	if old, ok := p.instances[s.InstanceID]; ok {
		if old.StartID == s.StartID {
			return old, nil
		}
		return provider.Instance{}, fmt.Errorf("fake: instance %q: %w", s.InstanceID, provider.ErrAlreadyExists)
	}
	now := p.now().UTC()
	in := provider.Instance{
		InstanceID: s.InstanceID, ExecutionID: fmt.Sprintf("x%d", len(p.instances)+1), ExecutionNumber: 1, Name: s.Name, Version: s.Version,
		Status: provider.StatusPending, StartID: s.StartID, CreatedAt: now, UpdatedAt: now, Tags: maps.Clone(s.Tags),
	}
	p.instances[s.InstanceID] = in
	p.events[in.ExecutionID] = []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: now, Name: s.Name, Version: s.Version, Input: s.Input,
		StartID: s.StartID, Number: 1, Tags: in.Tags,
	}}
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

// ReadEnd implements provider.Instances.
func (p *Provider) ReadEnd(ctx context.Context, executionID string) (history.Event, error) {
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
func (p *Provider) ReadHistory(ctx context.Context, executionID string, after int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(history.Event{}, err)
			return
		}
		events := slices.Clone(p.events[executionID])
		p.mu.Unlock()
		for i := range events {
			if events[i].ID > after && !yield(events[i], nil) {
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

// EnqueueForOrchestrator keeps the messages for Sent.
func (p *Provider) EnqueueForOrchestrator(_ context.Context, ms ...provider.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	p.sent = append(p.sent, ms...)
	return nil
}

// Sent are the messages that were put into inboxes.
func (p *Provider) Sent() []provider.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}
