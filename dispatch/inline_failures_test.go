package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests cover inline activities that fail, are stopped, or have a copy that fails.

// Like results, failures that exceed a commit are consumed in parts, and no activity runs again.
func TestR20_failuresExceedACommit_areConsumedInParts(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(_ context.Context, n int) (int, error) { return 0, errors.New(letters(n)[:16_000]) }}
	body := func(ctx *perdure.OrchestrationContext, n int) (failed int, _ error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, callWork(ctx, i))
		}
		for _, f := range fs {
			if _, err := f.Await(ctx); err != nil {
				failed++
			}
		}
		return failed, nil
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		var commits atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			for _, it := range itemsPut(c) {
				if strings.HasPrefix(text(it, "sk"), "h#") {
					commits.Add(1)
				}
			}
			if commits.Load() > 100 {
				return errors.New("more than 100 commits")
			}
			return next()
		})
		if end := h.finish(h.start("works", 400)); string(end.Output) != "400" {
			t.Errorf("ended with %s %s, want 400", end.String(), end.Output)
		}
		w.wantRuns(t, 400, 0)
		h.checkRest()
	})
}

// An inline activity that is stopped between two attempts continues with the next attempt in its queue.
func TestR20_pauseBetweenTwoAttempts_nextAttemptRunsInItsQueue(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, _ int) (int, error) {
		return 0, fmt.Errorf("attempt %d", perdure.ActivityInfoFrom(ctx).Attempt)
	}}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		policy := perdure.RetryPolicy{InitialInterval: 900 * time.Millisecond, BackoffCoefficient: 1, MaxAttempts: 3}
		return callWork(ctx, n, perdure.WithRetry(policy)).Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 3)
		time.AfterFunc(500*time.Millisecond, func() {
			must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
		})
		h.serveFor(time.Minute)
		w.wantRuns(t, 3, 1)
		for i, a := range w.runs {
			if a.Attempt != i+1 {
				t.Errorf("run %d has attempt %d", i+1, a.Attempt)
			}
		}
		must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
		if end := h.finish(in); end.Kind != history.OrchestrationFailed {
			t.Errorf("ended with %s, want failed", end.String())
		}
		h.checkRest()
	})
}

// An inline activity is stopped between two attempts without a client's request. The next attempt does not start before
// its due time.
func TestR20_stoppedBetweenTwoAttempts_nextAttemptWaitsUntilDue(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var at []time.Time
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		if n == 1 {
			return n, sleepFor(ctx, 100*time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if at = append(at, time.Now()); len(at) == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	}}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		retry := perdure.RetryPolicy{InitialInterval: 900 * time.Millisecond, Jitter: perdure.NoJitter}
		again := callWork(ctx, n, perdure.WithRetry(retry))
		var fs []*perdure.Future[int]
		for i := range 600 { // no inline activity runs during the commit of such a large turn
			fs = append(fs, perdure.CallActivity(ctx, inc, i))
		}
		if _, err := callWork(ctx, 1).Await(ctx); err != nil {
			return 0, err
		}
		if _, err := sumOf(ctx, fs); err != nil {
			return 0, err
		}
		return again.Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		if end := h.finish(h.start("works", 3)); string(end.Output) != "3" {
			t.Errorf("ended with %s %s, want 3", end.String(), end.Output)
		}
		w.wantRuns(t, 3, 1)
		if waited := at[1].Sub(at[0]); waited < 900*time.Millisecond || waited > 3*time.Second {
			t.Errorf("the second attempt started %v after the first, want 0.9s to 3s", waited)
		}
		h.checkRest()
	})
}

// A copy of an inline activity runs in a worker and fails. The activity already has an outcome in history that the code
// has not received. The failure schedules no further attempt, even for a paused instance or a chain that has yielded.
func TestR20_copyFailsAfterTheOutcome_isDropped(t *testing.T) {
	t.Parallel()
	retried := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			retry := perdure.RetryPolicy{InitialInterval: time.Second, MaxAttempts: 9}
			if v, err = callWork(ctx, v, perdure.WithRetry(retry)).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	}
	for name, c := range map[string]struct {
		takes  time.Duration
		pauses bool
	}{"paused": {time.Millisecond, true}, "yielded": {100 * time.Millisecond, false}} {
		w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
			return n + 1, sleepFor(ctx, c.takes)
		}}
		withInlineWork(t, w, simhub.Options{}, retried, func(ctx context.Context, h *hub) {
			in := h.start("works", 150)
			if c.pauses {
				must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
			}
			h.turn(0)
			last := lastInlineOutcome(h, in)
			o := failed(last.SourceEventID, 1, "r.1", time.Now().Add(time.Second))
			must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageActivityAttempts, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
				Outcomes: []provider.ActivityOutcome{o},
			}))
			h.turn(0)
			for _, made := range h.made() {
				if tx, ok := made.Input.(*dynamodb.TransactWriteItemsInput); ok &&
					slices.ContainsFunc(tx.TransactItems, isRetry) {
					t.Errorf("%s: a call stored a next attempt", name)
				}
			}
			if c.pauses {
				must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
			}
			if end := h.finish(in); string(end.Output) != "150" {
				t.Errorf("%s: ended with %s %s, want 150", name, end.String(), end.Output)
			}
			w.wantRuns(t, 150, 0)
			h.checkRest()
		})
	}
}

// isRetry reports whether a write stores the current attempt of a retried activity.
func isRetry(w ddbtypes.TransactWriteItem) bool {
	return w.Update != nil && strings.HasPrefix(text(w.Update.Key, "sk"), "r#")
}

// lastInlineOutcome returns the last inline outcome in the history of an instance.
func lastInlineOutcome(h *hub, in provider.Instance) (last history.Event) {
	h.t.Helper()
	for _, e := range h.stored(in.ExecutionID) {
		if e.IsInlineOutcome() {
			last = e
		}
	}
	if last.SourceEventID == 0 {
		h.t.Fatal("the history has no inline outcome")
	}
	return last
}

// The metrics of activities include inline activities, measured in the orchestrator's function.
func TestMetrics_inlineActivities_areIncluded(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		switch a := perdure.ActivityInfoFrom(ctx); {
		case n == 1: // the loser of the race
			return n, sleepFor(ctx, time.Second)
		case n == 2 && a.CompletionToken == "": // exceeds its time and ignores its context
			time.Sleep(time.Minute)
		case n == 3 && a.Attempt < 3:
			return 0, errors.New("again")
		case n == 4:
			return 0, errors.New("no")
		}
		return n, nil
	}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		scope, cancel := perdure.WithCancel(ctx)
		_, _ = perdure.Select(ctx, callWork(scope, 0), callWork(scope, 1))
		cancel()
		retry := perdure.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaxAttempts: 3}
		if _, err := callWork(ctx, 3, perdure.WithRetry(retry)).Await(ctx); err != nil {
			return 0, err
		}
		_, _ = callWork(ctx, 4).Await(ctx)
		return callWork(ctx, 2).Await(ctx)
	}
	lines, _ := measured(t, w.registry(body), dispatch.MetricsByName, func(h *hub) { h.finish(h.start("works", 0)) })
	of := map[string][]metricLine{}
	for _, l := range lines {
		d := l.AWS.CloudWatchMetrics[0].Dimensions[0][1]
		of[d] = append(of[d], l)
	}
	want := map[string]int{
		"ActivityExecutionLatency": 7, "ActivityScheduleToStartLatency": 1, // in a worker
		"ActivitiesRetried": 2, "ActivitiesFailed": 1, "ActivitiesCancelled": 1, "ActivitiesLeaked": 1,
	}
	if diff := cmp.Diff(want, sums(t, of["activity"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
