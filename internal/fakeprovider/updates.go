package fakeprovider

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// UpdateWith sets the function that handles updates when they are sent. A result that is not nil is stored for
// ReadUpdate.
func (p *Provider) UpdateWith(take func(provider.Message) *provider.UpdateResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = take
}

// takeUpdate keeps the answer to an update that is sent.
func (p *Provider) takeUpdate(m *provider.Message) {
	if p.update == nil || m.Kind != provider.MessageUpdate {
		return
	}
	if a := p.update(*m); a != nil {
		a.InstanceID, a.UpdateID, a.Name, a.StartID = m.InstanceID, m.EventID, m.Name, m.StartID
		p.keepAnswer(*a)
	}
}

func (p *Provider) keepAnswer(a provider.UpdateResult) {
	if p.updates == nil {
		p.updates = map[string]provider.UpdateResult{}
	}
	p.updates[a.InstanceID+"\n"+a.UpdateID] = a
}

// PutUpdateResults stores results of updates.
func (p *Provider) PutUpdateResults(_ context.Context, answers ...provider.UpdateResult) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	for i := range answers {
		p.keepAnswer(answers[i])
	}
	return nil
}

// ReadUpdate returns a stored result of an update.
func (p *Provider) ReadUpdate(_ context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return provider.UpdateResult{}, p.failure
	}
	a, there := p.updates[instanceID+"\n"+updateID]
	if !there {
		return a, fmt.Errorf("fakeprovider: update %q: %w", updateID, provider.ErrNotFound)
	}
	return a, nil
}
