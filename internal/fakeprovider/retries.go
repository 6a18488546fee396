package fakeprovider

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/perdure/perdure/provider"
)

// Retry sets the current attempt of an activity of an execution.
func (p *Provider) Retry(executionID string, r provider.ActivityRetry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := slices.DeleteFunc(p.retries[executionID], func(o provider.ActivityRetry) bool { return o.ActivityID == r.ActivityID })
	p.retries[executionID] = append(others, r)
}

// ReadRetries implements provider.Instances.
func (p *Provider) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return func(yield func(provider.ActivityRetry, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(provider.ActivityRetry{}, err)
			return
		}
		retries := slices.SortedFunc(slices.Values(p.retries[executionID]), func(a, b provider.ActivityRetry) int { return cmp.Compare(a.ActivityID, b.ActivityID) })
		p.mu.Unlock()
		for i := range retries {
			if !yield(retries[i], nil) {
				return
			}
		}
	}
}

// Retries sets the current attempts of activities of an execution that have none yet.
func (p *Provider) Retries(executionID string, rs []provider.ActivityRetry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retries[executionID] = append(p.retries[executionID], rs...)
}
