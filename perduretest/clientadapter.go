package perduretest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// clientAdapter is the provider for a client outside of the bubble: each call runs inside. The Done channel of an
// outside context would stop virtual time, so it is removed. The calls of an activity, which is inside, keep it.
type clientAdapter struct {
	completionAdapter
}

func (b *clientAdapter) StartOrchestration(ctx context.Context, s provider.Start) (in provider.Instance, err error) {
	ctx = b.within(ctx)
	b.env.do(func() {
		if in, err = b.Provider.StartOrchestration(ctx, s); err == nil {
			return
		}
		if _, failed := errors.AsType[*provider.Error](err); failed {
			b.env.hub.Sweeper.StartMayBeLost()
		}
	})
	return in, err
}

func (b *clientAdapter) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.EnqueueForOrchestrator(ctx, ms...) })
	return err
}

func (b *clientAdapter) ReadInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { in, err = b.Provider.ReadInstance(ctx, instanceID) })
	return in, err
}

func (b *clientAdapter) ReadTerminalEvent(ctx context.Context, executionID string) (e history.Event, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { e, err = b.Provider.ReadTerminalEvent(ctx, executionID) })
	return e, err
}

func (b *clientAdapter) ListInstances(ctx context.Context, q provider.ListQuery) (page provider.Page, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { page, err = b.Provider.ListInstances(ctx, q) })
	return page, err
}

func (b *clientAdapter) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[history.Event, error] {
		return b.Provider.ReadHistory(ctx, instanceID, executionID, after)
	})
}

func (b *clientAdapter) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.Execution, error] {
		return b.Provider.ListExecutions(ctx, instanceID)
	})
}

func (b *clientAdapter) ReadActivityRecords(
	ctx context.Context, executionID string,
) iter.Seq2[provider.ActivityRecord, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.ActivityRecord, error] {
		return b.Provider.ReadActivityRecords(ctx, executionID)
	})
}

func (b *clientAdapter) ReadActivityRecord(
	ctx context.Context, executionID string, activityID int64,
) (r provider.ActivityRecord, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { r, err = b.Provider.ReadActivityRecord(ctx, executionID, activityID) })
	return r, err
}

func (b *clientAdapter) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.ActivityRetry, error] {
		return b.Provider.ReadRetries(ctx, executionID)
	})
}

func (b *clientAdapter) ReadUpdate(
	ctx context.Context, instanceID, updateID string,
) (a provider.UpdateResult, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { a, err = b.Provider.ReadUpdate(ctx, instanceID, updateID) })
	return a, err
}

func (b *clientAdapter) DeleteInstance(ctx context.Context, instanceID string, force bool) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.DeleteInstance(ctx, instanceID, force) })
	return err
}

func (b *clientAdapter) ReadWorkers(ctx context.Context) (reports map[string]provider.WorkerReport, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { reports, err = b.Provider.ReadWorkers(ctx) })
	return reports, err
}

func (b *clientAdapter) VerifyWorkItemToken(ctx context.Context, token string) (w provider.WorkItem, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { w, err = b.Provider.VerifyWorkItemToken(ctx, token) })
	return w, err
}

func (b *clientAdapter) RenewWorkItemLocks(
	ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
) (rs []provider.Renewal, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { rs, err = b.Provider.RenewWorkItemLocks(ctx, queue, lock, items...) })
	return rs, err
}

// PutJob stores a job. A new job also matches instances that were started at this very time, because virtual time does
// not advance between a start and the job.
func (b *clientAdapter) PutJob(ctx context.Context, j *provider.Job) (err error) {
	if j.Revision == 0 && j.Filter.StartedBefore.Equal(j.CreatedAt) {
		j.Filter.StartedBefore = j.Filter.StartedBefore.Add(time.Millisecond)
	}
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.PutJob(ctx, j) })
	return err
}

func (b *clientAdapter) ReadJob(ctx context.Context, id string) (j provider.Job, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { j, err = b.Provider.ReadJob(ctx, id) })
	return j, err
}

func (b *clientAdapter) ListJobs(ctx context.Context) (js []provider.Job, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { js, err = b.Provider.ListJobs(ctx) })
	return js, err
}

// MatchInstances implements provider.Jobs for the preview of a job.
func (b *clientAdapter) MatchInstances(
	ctx context.Context, f provider.Filter, from string, most int,
) (found []provider.Target, next string, err error) {
	ctx = b.within(ctx)
	b.env.do(func() {
		if f.StartedBefore.Equal(time.Now().Truncate(time.Millisecond)) {
			f.StartedBefore = f.StartedBefore.Add(time.Millisecond) // as PutJob does
		}
		found, next, err = b.Provider.MatchInstances(ctx, f, from, most)
	})
	return found, next, err
}

func (b *clientAdapter) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.DeleteIncarnation(ctx, instanceID, startID, force) })
	return err
}

// QueryInstance runs a query in the hub's orchestrators, which have the test's code. Time limits are in virtual time.
func (b *clientAdapter) QueryInstance(
	ctx context.Context, q provider.QueryRequest,
) (answer json.RawMessage, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { answer, err = b.env.hub.QueryInstance(ctx, q) })
	return answer, err
}

// inside reads a sequence in the bubble and returns its values outside.
func inside[T any](env *Env, sequence func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	if env.watchdog.isInside() {
		return sequence()
	}
	return func(yield func(T, error) bool) {
		var all []T
		var failed error
		env.do(func() {
			for v, err := range sequence() {
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

// WaitInstance implements client.Waiter. It advances the clock until the instance has ended.
func (b *clientAdapter) WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if b.env.watchdog.isInside() {
		return b.poll(ctx, instanceID)
	}
	if b.env.network.isBusy() {
		return provider.Instance{}, errNoWait
	}
	return b.env.wait(ctx, b.Provider, instanceID)
}

// WaitUpdate implements client.UpdateWaiter. It advances the clock until the update is done.
func (b *clientAdapter) WaitUpdate(
	ctx context.Context, instanceID string, look func(context.Context) (done bool, err error),
) error {
	switch {
	case b.env.watchdog.isInside():
		return pollUntil(ctx, look)
	case b.env.network.isBusy():
		return errNoWait
	default:
		return until(ctx, b.env, b.Provider, instanceID, look)
	}
}

// errNoWait is the error of a wait that would not end.
var errNoWait = errors.New("perduretest: an activity of WithNetwork, or code that it calls, cannot wait for an " +
	"instance, because virtual time does not advance while it runs")

// pollEvery is the interval at which an activity that waits for an instance reads it.
const pollEvery = time.Second

// poll waits in an activity, where virtual time passes by itself.
func (b *clientAdapter) poll(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	err = pollUntil(ctx, func(ctx context.Context) (done bool, err error) {
		in, err = b.Provider.ReadInstance(ctx, instanceID)
		return in.Status.Terminal(), err
	})
	return in, err
}

func pollUntil(ctx context.Context, look func(context.Context) (done bool, err error)) error {
	for {
		if done, err := look(ctx); done || err != nil {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
