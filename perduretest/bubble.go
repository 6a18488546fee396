package perduretest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// bubble is the provider as a client outside the bubble sees it: each call runs inside. A context's Done channel is of the
// outside, and would stop virtual time, so it stays there.
type bubble struct {
	provider.Provider

	env *Env
}

func (b *bubble) StartOrchestration(ctx context.Context, s provider.Start) (in provider.Instance, err error) {
	b.env.do(func() { in, err = b.Provider.StartOrchestration(context.WithoutCancel(ctx), s) })
	return in, err
}

func (b *bubble) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) (err error) {
	b.env.do(func() { err = b.Provider.EnqueueForOrchestrator(context.WithoutCancel(ctx), ms...) })
	return err
}

func (b *bubble) ReadInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	b.env.do(func() { in, err = b.Provider.ReadInstance(context.WithoutCancel(ctx), instanceID) })
	return in, err
}

func (b *bubble) ReadEnd(ctx context.Context, executionID string) (e history.Event, err error) {
	b.env.do(func() { e, err = b.Provider.ReadEnd(context.WithoutCancel(ctx), executionID) })
	return e, err
}

func (b *bubble) ListInstances(ctx context.Context, q provider.Query) (page provider.Page, err error) {
	b.env.do(func() { page, err = b.Provider.ListInstances(context.WithoutCancel(ctx), q) })
	return page, err
}

func (b *bubble) ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error] {
	return inside(b.env, func() iter.Seq2[history.Event, error] {
		return b.Provider.ReadHistory(context.WithoutCancel(ctx), instanceID, executionID, after)
	})
}

func (b *bubble) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return inside(b.env, func() iter.Seq2[provider.Execution, error] {
		return b.Provider.ListExecutions(context.WithoutCancel(ctx), instanceID)
	})
}

func (b *bubble) ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRecord, error] {
	return inside(b.env, func() iter.Seq2[provider.ActivityRecord, error] {
		return b.Provider.ReadActivityRecords(context.WithoutCancel(ctx), executionID)
	})
}

func (b *bubble) ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (r provider.ActivityRecord, err error) {
	b.env.do(func() { r, err = b.Provider.ReadActivityRecord(context.WithoutCancel(ctx), executionID, activityID) })
	return r, err
}

func (b *bubble) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return inside(b.env, func() iter.Seq2[provider.ActivityRetry, error] {
		return b.Provider.ReadRetries(context.WithoutCancel(ctx), executionID)
	})
}

func (b *bubble) DeleteInstance(ctx context.Context, instanceID string, force bool) (err error) {
	b.env.do(func() { err = b.Provider.DeleteInstance(context.WithoutCancel(ctx), instanceID, force) })
	return err
}

// inside goes through a sequence in the bubble, and hands it out afterwards.
func inside[T any](env *Env, sequence func() iter.Seq2[T, error]) iter.Seq2[T, error] {
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

// WaitInstance serves Client.Wait: it advances the clock as far as it must.
func (b *bubble) WaitInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	b.env.do(func() { in, err = b.wait(ctx, instanceID) })
	return in, err
}

// longest is the most that Wait lets pass at once while an activity is running and no message is due.
const longest = time.Hour

// IdleError means that an instance is not over, and nothing in the Env can end it: no message is due or delayed, and no
// activity is running. It waits for something that the test has not done.
type IdleError struct {
	InstanceID string
	Status     provider.RuntimeStatus
}

func (e *IdleError) Error() string {
	return fmt.Sprintf("perduretest: instance %q is %s and will stay so: nothing is due, delayed or running", e.InstanceID, e.Status)
}

func (b *bubble) wait(ctx context.Context, instanceID string) (provider.Instance, error) {
	cloud := b.env.hub.Cloud
	for {
		b.env.settle()
		in, err := b.Provider.ReadInstance(context.WithoutCancel(ctx), instanceID)
		if err != nil || in.Status.Terminal() {
			return in, err
		}
		if ctx.Err() != nil {
			return in, context.Cause(ctx)
		}
		if _, due := cloud.NextDue(); !due && cloud.InFlight() == 0 {
			return in, &IdleError{InstanceID: instanceID, Status: in.Status}
		}
		b.env.pass(longest)
	}
}
