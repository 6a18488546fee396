package fakeprovider

import (
	"context"
	"maps"

	"github.com/perdure/perdure/provider"
)

// ReportWorker implements provider.Monitoring.
func (p *Provider) ReportWorker(ctx context.Context, r provider.WorkerReport) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	if p.workers == nil {
		p.workers = map[string]provider.WorkerReport{}
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = p.workers[r.Queue].StartedAt
	}
	r.SeenAt = p.time()
	p.workers[r.Queue] = r
	return nil
}

// ReadWorkers implements provider.Monitoring.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	reports := map[string]provider.WorkerReport{}
	maps.Copy(reports, p.workers)
	if p.workers == nil && p.forClients {
		reports[DefaultQueue] = provider.WorkerReport{Queue: DefaultQueue, SeenAt: p.now()}
	}
	return reports, nil
}

// CountWorkItems implements provider.Monitoring.
func (p *Provider) CountWorkItems(ctx context.Context) (map[string]int, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	counts := map[string]int{}
	for name, q := range p.queues {
		if name == provider.QueueInbox || name == provider.QueueTimers {
			continue
		}
		counts[name] = 0
		for _, r := range q.records {
			if r.ReceiveCount > 0 || !r.visibleAt.After(p.now()) {
				counts[name]++
			}
		}
	}
	return counts, nil
}

// CountAttention implements provider.Monitoring.
func (p *Provider) CountAttention(ctx context.Context) (a provider.AttentionCounts, err error) {
	if err := p.begin(ctx); err != nil {
		return a, err
	}
	defer p.mu.Unlock()
	a.Blocked = min(len(p.withStatus(provider.StatusBlocked)), provider.MaxAttention)
	for _, in := range p.withStatus(provider.StatusPending) {
		begins := in.CreatedAt
		if in.StartAt.After(begins) {
			begins = in.StartAt
		}
		if !in.wakeAt.IsZero() && (a.OldestPending.IsZero() || begins.Before(a.OldestPending)) {
			a.OldestPending = begins
		}
	}
	return a, nil
}
