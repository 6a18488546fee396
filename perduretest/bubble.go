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

// bubble is the provider as a client outside the bubble sees it: each call runs inside. A context's Done channel is of the
// outside, and would stop virtual time, so it stays there. The calls of an activity, which is inside, keep it.
type bubble struct {
	holders
}

func (b *bubble) StartOrchestration(ctx context.Context, s provider.Start) (in provider.Instance, err error) {
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

func (b *bubble) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.EnqueueForOrchestrator(ctx, ms...) })
	return err
}

func (b *bubble) ReadInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { in, err = b.Provider.ReadInstance(ctx, instanceID) })
	return in, err
}

func (b *bubble) ReadTerminalEvent(ctx context.Context, executionID string) (e history.Event, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { e, err = b.Provider.ReadTerminalEvent(ctx, executionID) })
	return e, err
}

func (b *bubble) ListInstances(ctx context.Context, q provider.ListQuery) (page provider.Page, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { page, err = b.Provider.ListInstances(ctx, q) })
	return page, err
}

func (b *bubble) ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[history.Event, error] {
		return b.Provider.ReadHistory(ctx, instanceID, executionID, after)
	})
}

func (b *bubble) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.Execution, error] {
		return b.Provider.ListExecutions(ctx, instanceID)
	})
}

func (b *bubble) ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRecord, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.ActivityRecord, error] {
		return b.Provider.ReadActivityRecords(ctx, executionID)
	})
}

func (b *bubble) ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (r provider.ActivityRecord, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { r, err = b.Provider.ReadActivityRecord(ctx, executionID, activityID) })
	return r, err
}

func (b *bubble) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	ctx = b.within(ctx)
	return inside(b.env, func() iter.Seq2[provider.ActivityRetry, error] {
		return b.Provider.ReadRetries(ctx, executionID)
	})
}

func (b *bubble) ReadUpdate(ctx context.Context, instanceID, updateID string) (a provider.UpdateResult, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { a, err = b.Provider.ReadUpdate(ctx, instanceID, updateID) })
	return a, err
}

func (b *bubble) DeleteInstance(ctx context.Context, instanceID string, force bool) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.DeleteInstance(ctx, instanceID, force) })
	return err
}

func (b *bubble) ReadWorkers(ctx context.Context) (reports map[string]provider.WorkerReport, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { reports, err = b.Provider.ReadWorkers(ctx) })
	return reports, err
}

func (b *bubble) VerifyWorkItemToken(ctx context.Context, token string) (w provider.WorkItem, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { w, err = b.Provider.VerifyWorkItemToken(ctx, token) })
	return w, err
}

func (b *bubble) RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) (rs []provider.Renewal, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { rs, err = b.Provider.RenewWorkItemLocks(ctx, queue, lock, items...) })
	return rs, err
}

// PutJob stores a job. A new job also matches instances that were started at this very time, because virtual time does
// not advance between a start and the job.
func (b *bubble) PutJob(ctx context.Context, j *provider.Job) (err error) {
	if j.Revision == 0 && j.Filter.StartedBefore.Equal(j.CreatedAt) {
		j.Filter.StartedBefore = j.Filter.StartedBefore.Add(time.Millisecond)
	}
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.PutJob(ctx, j) })
	return err
}

func (b *bubble) ReadJob(ctx context.Context, id string) (j provider.Job, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { j, err = b.Provider.ReadJob(ctx, id) })
	return j, err
}

func (b *bubble) ListJobs(ctx context.Context) (js []provider.Job, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { js, err = b.Provider.ListJobs(ctx) })
	return js, err
}

// MatchInstances implements provider.Jobs for the preview of a job.
func (b *bubble) MatchInstances(ctx context.Context, f provider.Filter, from string, most int) (found []provider.Target, next string, err error) {
	ctx = b.within(ctx)
	b.env.do(func() {
		if f.StartedBefore.Equal(time.Now().Truncate(time.Millisecond)) {
			f.StartedBefore = f.StartedBefore.Add(time.Millisecond) // as PutJob does
		}
		found, next, err = b.Provider.MatchInstances(ctx, f, from, most)
	})
	return found, next, err
}

func (b *bubble) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) (err error) {
	ctx = b.within(ctx)
	b.env.do(func() { err = b.Provider.DeleteIncarnation(ctx, instanceID, startID, force) })
	return err
}

// QueryInstance runs a query in the hub's orchestrators, which have the test's code. Time limits are in virtual time.
func (b *bubble) QueryInstance(ctx context.Context, q provider.QueryRequest) (answer json.RawMessage, err error) {
	ctx = b.within(ctx)
	b.env.do(func() { answer, err = b.env.hub.QueryInstance(ctx, q) })
	return answer, err
}

// inside goes through a sequence in the bubble, and hands it out afterwards.
func inside[T any](env *Env, sequence func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	if env.watch.isInside() {
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
func (b *bubble) WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if b.env.watch.isInside() {
		return b.poll(ctx, instanceID)
	}
	if b.env.network.isBusy() {
		return provider.Instance{}, errNoWait
	}
	return b.env.wait(ctx, b.Provider, instanceID)
}

// WaitUpdate implements client.UpdateWaiter. It advances the clock until the update is done.
func (b *bubble) WaitUpdate(ctx context.Context, instanceID string, look func(context.Context) (done bool, err error)) error {
	switch {
	case b.env.watch.isInside():
		return pollUntil(ctx, look)
	case b.env.network.isBusy():
		return errNoWait
	default:
		return until(ctx, b.env, b.Provider, instanceID, look)
	}
}

// errNoWait reports a wait that would not end.
var errNoWait = errors.New("perduretest: an activity of WithNetwork, or code that it calls, cannot wait for an " +
	"instance, because virtual time does not advance while it runs")

// pollEvery is how long an activity that waits for an instance lets pass between two looks.
const pollEvery = time.Second

// poll waits as an activity does: virtual time goes on by itself.
func (b *bubble) poll(ctx context.Context, instanceID string) (in provider.Instance, err error) {
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
