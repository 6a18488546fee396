package inside

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Provider is the provider for a client outside of the bubble. It runs each call in the bubble. The Done channel of an
// outside context would stop virtual time, so Provider removes it. Calls of an activity keep their context, because an
// activity runs in the bubble.
type Provider struct {
	completions
}

// NewProvider returns the provider of a client outside of the bubble.
func NewProvider(p provider.Provider, b Bubble) *Provider { return &Provider{completions{hub{p, b}}} }

// Within returns a context for a call in the bubble.
func (b *Provider) Within(ctx context.Context) context.Context { return b.within(ctx) }

// StartOrchestration implements client.Backend.
func (b *Provider) StartOrchestration(ctx context.Context, s provider.Start) (in provider.Instance, err error) {
	b.run(ctx, func(ctx context.Context) {
		if in, err = b.Provider.StartOrchestration(ctx, s); err == nil {
			return
		}
		if _, failed := errors.AsType[*provider.Error](err); failed {
			b.bubble.StartMayBeLost()
		}
	})
	return in, err
}

// EnqueueForOrchestrator implements client.Backend.
func (b *Provider) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.EnqueueForOrchestrator(ctx, ms...) })
	return err
}

// ReadInstance implements client.Backend.
func (b *Provider) ReadInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	b.run(ctx, func(ctx context.Context) { in, err = b.Provider.ReadInstance(ctx, instanceID) })
	return in, err
}

// ReadTerminalEvent implements client.Backend.
func (b *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (e history.Event, err error) {
	b.run(ctx, func(ctx context.Context) { e, err = b.Provider.ReadTerminalEvent(ctx, executionID) })
	return e, err
}

// ListInstances implements client.Backend.
func (b *Provider) ListInstances(ctx context.Context, q provider.ListQuery) (page provider.Page, err error) {
	b.run(ctx, func(ctx context.Context) { page, err = b.Provider.ListInstances(ctx, q) })
	return page, err
}

// ReadHistory implements client.Backend.
func (b *Provider) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return sequence(ctx, &b.hub, func(ctx context.Context) iter.Seq2[history.Event, error] {
		return b.Provider.ReadHistory(ctx, instanceID, executionID, after)
	})
}

// ListExecutions implements client.Backend.
func (b *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return sequence(ctx, &b.hub, func(ctx context.Context) iter.Seq2[provider.Execution, error] {
		return b.Provider.ListExecutions(ctx, instanceID)
	})
}

// ReadActivityRecords implements client.Backend.
func (b *Provider) ReadActivityRecords(
	ctx context.Context, executionID string,
) iter.Seq2[provider.ActivityRecord, error] {
	return sequence(ctx, &b.hub, func(ctx context.Context) iter.Seq2[provider.ActivityRecord, error] {
		return b.Provider.ReadActivityRecords(ctx, executionID)
	})
}

// ReadActivityRecord implements client.Backend.
func (b *Provider) ReadActivityRecord(
	ctx context.Context, executionID string, activityID int64,
) (r provider.ActivityRecord, err error) {
	b.run(ctx, func(ctx context.Context) { r, err = b.Provider.ReadActivityRecord(ctx, executionID, activityID) })
	return r, err
}

// ReadRetries implements client.Backend.
func (b *Provider) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return sequence(ctx, &b.hub, func(ctx context.Context) iter.Seq2[provider.ActivityRetry, error] {
		return b.Provider.ReadRetries(ctx, executionID)
	})
}

// ReadUpdate implements client.Backend.
func (b *Provider) ReadUpdate(
	ctx context.Context, instanceID, updateID string,
) (a provider.UpdateResult, err error) {
	b.run(ctx, func(ctx context.Context) { a, err = b.Provider.ReadUpdate(ctx, instanceID, updateID) })
	return a, err
}

// DeleteInstance implements client.Backend.
func (b *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.DeleteInstance(ctx, instanceID, force) })
	return err
}

// ReadWorkers implements client.Backend.
func (b *Provider) ReadWorkers(ctx context.Context) (reports map[string]provider.WorkerReport, err error) {
	b.run(ctx, func(ctx context.Context) { reports, err = b.Provider.ReadWorkers(ctx) })
	return reports, err
}

// VerifyWorkItemToken implements client.Backend.
func (b *Provider) VerifyWorkItemToken(ctx context.Context, token string) (w provider.WorkItem, err error) {
	b.run(ctx, func(ctx context.Context) { w, err = b.Provider.VerifyWorkItemToken(ctx, token) })
	return w, err
}

// RenewWorkItemLocks implements client.Backend.
func (b *Provider) RenewWorkItemLocks(
	ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
) (rs []provider.Renewal, err error) {
	b.run(ctx, func(ctx context.Context) { rs, err = b.Provider.RenewWorkItemLocks(ctx, queue, lock, items...) })
	return rs, err
}

// PutJob stores a job. A new job also matches instances that were started at the current time, because virtual time
// does not advance between a start and the job.
func (b *Provider) PutJob(ctx context.Context, j *provider.Job) (err error) {
	if j.Revision == 0 && j.Filter.StartedBefore.Equal(j.CreatedAt) {
		j.Filter.StartedBefore = j.Filter.StartedBefore.Add(time.Millisecond)
	}
	b.run(ctx, func(ctx context.Context) { err = b.Provider.PutJob(ctx, j) })
	return err
}

// ReadJob implements client.Backend.
func (b *Provider) ReadJob(ctx context.Context, id string) (j provider.Job, err error) {
	b.run(ctx, func(ctx context.Context) { j, err = b.Provider.ReadJob(ctx, id) })
	return j, err
}

// ListJobs implements client.Backend.
func (b *Provider) ListJobs(ctx context.Context) (js []provider.Job, err error) {
	b.run(ctx, func(ctx context.Context) { js, err = b.Provider.ListJobs(ctx) })
	return js, err
}

// MatchInstances implements provider.Jobs for the preview of a job.
func (b *Provider) MatchInstances(
	ctx context.Context, f provider.Filter, from string, most int,
) (found []provider.Target, next string, err error) {
	b.run(ctx, func(ctx context.Context) {
		if f.StartedBefore.Equal(time.Now().Truncate(time.Millisecond)) {
			f.StartedBefore = f.StartedBefore.Add(time.Millisecond) // as in PutJob
		}
		found, next, err = b.Provider.MatchInstances(ctx, f, from, most)
	})
	return found, next, err
}

// DeleteIncarnation implements client.Backend.
func (b *Provider) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) (err error) {
	b.run(ctx, func(ctx context.Context) { err = b.Provider.DeleteIncarnation(ctx, instanceID, startID, force) })
	return err
}

// sequence reads a sequence in the bubble and returns its values outside.
func sequence[T any](
	ctx context.Context, b *hub, read func(ctx context.Context) iter.Seq2[T, error],
) iter.Seq2[T, error] {
	if b.bubble.IsInside() {
		return read(ctx)
	}
	return func(yield func(T, error) bool) {
		var all []T
		var failed error
		b.run(ctx, func(ctx context.Context) {
			for v, err := range read(ctx) {
				if failed = err; err == nil {
					all = append(all, v)
				}
			}
		})
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if failed != nil {
			var none T
			yield(none, failed)
		}
	}
}
