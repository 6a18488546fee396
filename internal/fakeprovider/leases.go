package fakeprovider

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// Lock sets the result of renewals of a receipt handle. If r.Until is set, the lock is extended from the time of the
// renewal, whatever the value is. Every token that begins with w1 belongs to the hub.
func (p *Provider) Lock(receiptHandle string, r provider.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locks == nil {
		p.locks = map[string]provider.Renewal{}
	}
	p.locks[receiptHandle] = r
}

// VerifyWorkItemToken implements provider.Completions.
func (p *Provider) VerifyWorkItemToken(_ context.Context, token string) (provider.WorkItem, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return provider.WorkItem{}, p.failure
	}
	if len(token) < 2 || token[:2] != "w1" {
		return provider.WorkItem{}, provider.ErrInvalidToken
	}
	return provider.WorkItem{V: provider.WireVersion, Queue: "default", ExecutionID: token}, nil
}

// RenewWorkItemLocks implements provider.WorkItems. The locks of receipt handles that were not set with Lock are lost.
func (p *Provider) RenewWorkItemLocks(_ context.Context, _ string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	renewals := make([]provider.Renewal, len(items))
	for i := range items {
		r, known := p.locks[items[i].Record.ReceiptHandle]
		if r.Lost = r.Lost || !known; !r.Until.IsZero() {
			r.Until = p.now().Add(lock)
		}
		renewals[i] = r
	}
	return renewals, nil
}
