package fakeprovider

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// Leave adds activity records to an execution.
func (p *Provider) Leave(executionID string, records ...provider.ActivityRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[executionID] = append(p.left[executionID], records...)
}

// ReadActivityRecords implements provider.Instances.
func (p *Provider) ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRecord, error] {
	return func(yield func(provider.ActivityRecord, error) bool) {
		if err := p.begin(ctx); err != nil {
			yield(provider.ActivityRecord{}, err)
			return
		}
		records := slices.SortedFunc(slices.Values(p.left[executionID]), func(a, b provider.ActivityRecord) int { return cmp.Compare(a.ActivityID, b.ActivityID) })
		p.mu.Unlock()
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// ReadActivityRecord implements provider.Activities. It returns the last record that was added for an activity.
func (p *Provider) ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error) {
	if err := p.begin(ctx); err != nil {
		return provider.ActivityRecord{ActivityID: activityID}, err
	}
	defer p.mu.Unlock()
	for _, r := range slices.Backward(p.left[executionID]) {
		if r.ActivityID == activityID {
			return r, nil
		}
	}
	return provider.ActivityRecord{ActivityID: activityID}, nil
}

// Work sets the times at which workers last reported, by queue. The default is a worker of the default queue that has
// just reported.
func (p *Provider) Work(seen map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = seen
}

// ReadWorkers implements provider.Monitoring.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	reports := map[string]provider.WorkerReport{}
	if p.workers == nil {
		reports["default"] = provider.WorkerReport{Queue: "default", SeenAt: p.now()}
	}
	for queue, at := range p.workers {
		reports[queue] = provider.WorkerReport{Queue: queue, SeenAt: at}
	}
	return reports, nil
}
