package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests cover races of inline activities (R20 in docs/internals/rules.md).

// inlineWork records the runs of the inline activity "work".
type inlineWork struct {
	code func(ctx context.Context, n int) (int, error)

	mu   sync.Mutex
	runs []perdure.ActivityInfo
}

// work is the activity "work".
func (w *inlineWork) work(ctx context.Context, n int) (int, error) {
	w.mu.Lock()
	w.runs = append(w.runs, perdure.ActivityInfoFrom(ctx))
	w.mu.Unlock()
	if w.code == nil {
		return n + 1, nil
	}
	return w.code(ctx, n)
}

// ran returns the number of runs, and the number of runs in a worker, which have a completion token.
func (w *inlineWork) ran() (all, outside int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.runs {
		if w.runs[i].CompletionToken != "" {
			outside++
		}
	}
	return len(w.runs), outside
}

// wantRuns fails the test unless the code ran all times, including outside times in a worker.
func (w *inlineWork) wantRuns(t *testing.T, all, outside int) {
	t.Helper()
	if a, o := w.ran(); a != all || o != outside {
		t.Errorf("got %d runs, %d of them in a worker, want %d and %d", a, o, all, outside)
	}
}

// registry returns the inline activity "work" and the orchestration "works", which runs body. If body is nil, "works"
// calls the activity n times in sequence.
func (w *inlineWork) registry(body func(ctx *perdure.OrchestrationContext, n int) (int, error)) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "work", w.work, perdure.Inline())
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		if body != nil {
			return body(ctx, n)
		}
		for range n {
			if v, err = callWork(ctx, v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
	return r
}

// callWork calls the activity "work".
func callWork(ctx *perdure.OrchestrationContext, n int, opts ...perdure.ActivityCallOption) *perdure.Future[int] {
	return perdure.CallActivityByName[int](ctx, "work", n, opts...)
}

// withInlineWork runs f on a hub with the registry of w.
func withInlineWork(
	t *testing.T, w *inlineWork, o simhub.Options, body func(*perdure.OrchestrationContext, int) (int, error),
	f func(ctx context.Context, h *hub),
) {
	t.Helper()
	o.Registry = w.registry(body)
	inBubble(t, o, f)
}

// sleepFor waits for d or for the end of ctx.
func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

//  1. An inline activity crashes its process.
//  2. The redispatch sends the activity to its queue, and a worker runs it. If the activity also crashed workers, only
//     the activity would be poison, and not the instance.
func TestR20_activityCrashesItsProcess_isSentToItsQueue(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			simhub.Die(ctx)
		}
		return n + 1, nil
	}
	o := simhub.Options{Intercept: simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })}
	withInlineWork(t, w, o, nil, func(_ context.Context, h *hub) {
		in := h.start("works", 2)
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s %s, want 2", end.String(), end.Output)
		}
		w.wantRuns(t, 4, 2) // each crashed inline and then ran in a worker
		h.checkIdle()
	})
}

// An inline activity that crashes every process fails as poison, like any other activity.
func TestR20_activityCrashesEveryProcess_failsAsPoison(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		simhub.Die(ctx)
		return n, nil
	}
	never := simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })
	withInlineWork(t, w, simhub.Options{Intercept: never, MaxAttempts: 2}, nil, func(_ context.Context, h *hub) {
		end := h.finish(h.start("works", 1))
		if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, "crashed the process") {
			t.Errorf("ended with %s %v, want a failure about crashes", end.String(), end.Error)
		}
		if all, outside := w.ran(); all-outside != 1 {
			t.Errorf("got %d inline runs, want 1", all-outside)
		}
	})
}

// The next turn consumes a committed outcome in any process. The activity does not run again (I2).
func TestR20_outcomeIsCommitted_activityDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		w := &inlineWork{}
		crash, crashed := crashOnce(true, func(c simaws.Call) bool { return isCommit(c, fmt.Sprintf("h#%010d", n)) })
		withInlineWork(t, w, simhub.Options{Intercept: crash}, nil, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("works", 3)); string(end.Output) != "3" || !crashed.Load() {
				t.Errorf("ended with %s %s, crashed: %v, want 3", end.String(), end.Output, crashed.Load())
			}
			outside := 1 // the activity after the crash
			if n == 3 {
				outside = 0
			}
			w.wantRuns(t, 3, outside)
			h.checkIdle()
		})
	}
}

// An inline activity continues to run during a commit, and its process crashes after the commit. The redispatch sends
// the activity to its queue.
func TestR20_processDiesAfterACommitDuringAnActivity_redispatchSendsIt(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		return n, sleepFor(ctx, time.Duration(n)*time.Millisecond)
	}}
	both := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		first, second := callWork(ctx, 1), callWork(ctx, 1000)
		if _, err := first.Await(ctx); err != nil {
			return 0, err
		}
		return second.Await(ctx)
	}
	crash, crashed := crashOnce(true, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
	withInlineWork(t, w, simhub.Options{Intercept: crash}, both, func(_ context.Context, h *hub) {
		if end := h.finish(h.start("works", 0)); string(end.Output) != "1000" || !crashed.Load() {
			t.Errorf("ended with %s %s, crashed: %v, want 1000", end.String(), end.Output, crashed.Load())
		}
		w.wantRuns(t, 3, 1)
		h.checkIdle()
	})
}

// A process freezes in an inline activity, and another process continues. The thawed process commits nothing. Its
// outcome is dropped if the instance has ended, or still waits for the worker.
func TestR20_processIsThawed_commitConflicts(t *testing.T) {
	t.Parallel()
	for _, works := range []time.Duration{0, time.Hour} {
		w := &inlineWork{}
		w.code = func(ctx context.Context, _ int) (int, error) {
			if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
				time.Sleep(30 * time.Minute)
				return 1, nil
			}
			return 2, sleepFor(ctx, works)
		}
		withInlineWork(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
			stopped := time.Now() // time does not pass in a frozen function
			o := must(dispatch.NewOrchestrator(w.registry(nil), h.Provider, &dispatch.OrchestratorOptions{
				BuildID: "test", Logger: h.logger(), Clock: func() time.Time { return stopped },
			}))
			defer o.Close()
			var frozen atomic.Int64
			h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
				if ctx.Value(crashingKey{}) != nil && isCommit(c, "h#0000000001") {
					frozen.Add(1)
				}
				return next()
			})
			in := h.start("works", 1)
			over := make(chan []string, 1)
			records := h.receive(h.Provider.Config().InboxURL)
			go func() { over <- o.HandleRecords(context.WithValue(ctx, crashingKey{}, true), records) }()
			h.serveFor(20 * time.Minute)
			w.wantRuns(t, 2, 1)
			if failed := <-over; len(failed) > 0 || frozen.Load() != 1 {
				t.Errorf("thawed: got failed records %v after %d commits, want none after 1", failed, frozen.Load())
			}
			if end := h.finish(in); string(end.Output) != "2" {
				t.Errorf("ended with %s %s, want 2", end.String(), end.Output)
			}
			h.checkIdle()
		})
	}
}

// A session with a warm instance reads the head with strong consistency before the first inline activity. A turn of
// another process may have cancelled the instance (I6).
func TestR20_staleCache_runsNoActivity(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return -1, nil //nolint:nilerr // ends normally when it is cancelled
		}
		return callWork(ctx, 1).Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{Environments: 2}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 0)
		h.turn(0) // warms the instance in environment 0
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
		}))
		h.turn(1)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e",
			Data: history.Payload("1"),
		}))
		h.turn(0)
		w.wantRuns(t, 0, 0)
		h.finish(in)
		h.checkIdle()
	})
}

// An inline activity returns while a commit that sends it to its queue is in progress. Its outcome is dropped, and the
// outcome of the worker counts (I7).
func TestR20_outcomeDuringTheCommitThatSendsTheActivity_isDropped(t *testing.T) {
	t.Parallel()
	release := make(chan struct{}, 1)
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		let := make(chan struct{})
		w.code = func(ctx context.Context, _ int) (int, error) {
			if perdure.ActivityInfoFrom(ctx).CompletionToken != "" {
				return 2, nil
			}
			<-let // ignores the end of its context
			return 1, nil
		}
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000001") {
				close(let)
				time.Sleep(time.Millisecond)
			}
			return next()
		})
		in := h.start("works", 1)
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s %s, want 2", end.String(), end.Output)
		}
		w.wantRuns(t, 2, 1)
		h.checkIdle()
	})
	close(release)
}

// The response to a commit that sends an inline activity to its queue is lost. The commit is recognized by its nonce,
// and the activity does not run inline again.
func TestR20_responseToTheCommitIsLost_activityDoesNotRunInline(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, _ int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			return 1, sleepFor(ctx, time.Minute)
		}
		return 2, nil
	}}
	lost := 0
	var pollCount atomic.Int64
	var isLost, sent atomic.Bool
	withInlineWork(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch {
			case !isLost.Load():
			case c.Operation == "SendMessageBatch":
				sent.Store(true)
			case c.Operation == "Query" && !sent.Load():
				pollCount.Add(1)
			}
			err := next()
			if isCommit(c, "h#0000000001") && lost == 0 {
				lost++
				isLost.Store(true)
				return &ddbtypes.RequestLimitExceeded{Message: aws.String("the response was lost")}
			}
			return err
		})
		in := h.start("works", 1)
		if end := h.finish(in); string(end.Output) != "2" || lost != 1 {
			t.Errorf("ended with %s %s after %d lost responses, want 2 after 1", end.String(), end.Output, lost)
		}
		w.wantRuns(t, 2, 1)
		if n := pollCount.Load(); n > 0 {
			t.Errorf("got %d reads of the history before the send: the commit counted as a conflict", n)
		}
		h.checkIdle()
	})
}

// Code that ignores the end of its context is abandoned after a short grace period. An environment with three abandoned
// activities runs no more inline activities.
func TestR20_codeIgnoresItsContext_isAbandoned(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			time.Sleep(time.Hour)
		}
		return n + 1, nil
	}
	withInlineWork(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		in := h.start("works", 6)
		began := time.Now()
		if end := h.finish(in); string(end.Output) != "6" || end.Time.Sub(began) > time.Minute {
			t.Errorf("ended with %s %s after %v, want 6 within 1m", end.String(), end.Output, end.Time.Sub(began))
		}
		w.wantRuns(t, 9, 6) // three were abandoned
	})
}

// An inline activity races with a timer. The first of them is committed with the other decisions of the turn.
func TestR20_raceWithATimer_firstIsCommitted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takes, fires time.Duration
		want         string
	}{{500 * time.Millisecond, time.Minute, "0"}, {10 * time.Second, 5 * time.Second, "1"}} {
		w := &inlineWork{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, c.takes) }}
		race := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.Select(ctx, callWork(ctx, 1), perdure.CreateTimer(ctx, c.fires))
		}
		withInlineWork(t, w, simhub.Options{}, race, func(_ context.Context, h *hub) {
			in := h.start("works", 0)
			began := time.Now()
			end := h.finish(in)
			if string(end.Output) != c.want || end.Time.Sub(began) > c.fires+2*time.Second {
				t.Errorf("ended with %s %s after %v, want %s", end.String(), end.Output, end.Time.Sub(began), c.want)
			}
			h.checkIdle()
		})
	}
}

// A thousand inline activities that are awaited together run concurrently, a hundred at a time, and need one commit.
func TestR20_thousandActivities_runConcurrently(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		at := now.Add(1)
		for m := most.Load(); at > m && !most.CompareAndSwap(m, at); m = most.Load() {
		}
		defer now.Add(-1)
		return n, sleepFor(ctx, 10*time.Millisecond)
	}}
	all := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, callWork(ctx, i))
		}
		return sumOf(ctx, fs)
	}
	withInlineWork(t, w, simhub.Options{}, all, func(_ context.Context, h *hub) {
		h.Cloud.ResetCounts()
		end := h.finish(h.start("works", 1000))
		if string(end.Output) != "499500" || most.Load() != 100 {
			t.Errorf("ended with %s %s, %d at a time, want 499500 and 100", end.String(), end.Output, most.Load())
		}
		w.wantRuns(t, 1000, 0)
		h.checkIdle()
	})
}

// Results that exceed a commit are consumed in parts, and no activity runs again.
func TestR20_resultsExceedACommit_areConsumedInParts(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	var ran atomic.Int64
	perdure.AddActivity(r, "large", func(_ context.Context, n int) (string, error) {
		ran.Add(1)
		return strings.Repeat(fmt.Sprint(n%10), 150_000), nil
	}, perdure.Inline())
	perdure.AddOrchestration(r, "works", func(ctx *perdure.OrchestrationContext, n int) (total int, err error) {
		var fs []*perdure.Future[string]
		for i := range n {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "large", i))
		}
		for _, f := range fs {
			s, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			total += len(s)
		}
		return total, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		if end := h.finish(h.start("works", 40)); string(end.Output) != "6000000" || ran.Load() != 40 {
			t.Errorf("ended with %s %s %v after %d runs, want 6000000 after 40",
				end.String(), end.Output, end.Error, ran.Load())
		}
		h.checkIdle()
	})
}

// An inline activity that runs when the instance continues as new is cancelled, and not sent to its queue.
func TestR20_continueAsNew_cancelsRunningActivities(t *testing.T) {
	t.Parallel()
	var why atomic.Value
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		if err := sleepFor(ctx, time.Duration(n)*time.Millisecond); err != nil {
			if c, ok := errors.AsType[*perdure.CancelledError](err); ok {
				why.Store(c.Reason)
			}
			return 0, err
		}
		return n, nil
	}}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n == 0 {
			return 7, nil
		}
		callWork(ctx, 1500)
		if _, err := callWork(ctx, 1).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, n-1)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 2)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "7" {
			t.Errorf("ended with %s %s, want 7", end.String(), end.Output)
		}
		w.wantRuns(t, 4, 0)
		if why.Load() == nil {
			t.Error("the running activity was not cancelled")
		}
		if n := h.Cloud.Counts()["SQS.SendMessageBatch"]; n != 0 {
			t.Errorf("got %d sends, want none", n)
		}
		h.checkIdle()
	})
}

// A chain of inline activities yields after ten seconds, so the instance consumes an event in between.
func TestR20_chain_yieldsToMessages(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		return n + 1, sleepFor(ctx, 100*time.Millisecond)
	}}
	body := func(ctx *perdure.OrchestrationContext, n int) (done int, err error) {
		stop := perdure.WaitForExternalEvent[int](ctx, "stop")
		for ; done < n && !stop.IsDone(); done++ {
			if _, err := callWork(ctx, done).Await(ctx); err != nil {
				return 0, err
			}
		}
		return done, nil
	}
	withInlineWork(t, w, simhub.Options{}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 1000)
		time.AfterFunc(time.Second, func() {
			must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "stop", EventID: "e",
				Data: history.Payload("1"),
			}))
		})
		began := time.Now()
		end := h.finish(in)
		if took := end.Time.Sub(began); end.Kind != history.OrchestrationCompleted || took > 12*time.Second {
			t.Errorf("ended with %s %s after %v, want completed within 12s", end.String(), end.Output, took)
		}
		h.checkIdle()
	})
}

// A pause request follows the trigger in the batch. The pause takes effect before the turn of the next inline activity.
func TestR20_pauseFollowsTheTrigger_stopsTheChain(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
		in := h.start("works", 5)
		order := provider.Message{
			Kind: provider.MessageExecutionSuspended, InstanceID: in.InstanceID, StartID: in.StartID,
			EventID: history.PauseIDPrefix + "1",
		}
		must(0, h.Provider.EnqueueForOrchestrator(ctx, order))
		h.serveFor(time.Minute)
		w.wantRuns(t, 1, 0)
		order.Kind, order.EventID = provider.MessageExecutionResumed, history.PauseIDPrefix+"2"
		must(0, h.Provider.EnqueueForOrchestrator(ctx, order))
		if end := h.finish(in); string(end.Output) != "5" {
			t.Errorf("ended with %s %s, want 5", end.String(), end.Output)
		}
		w.wantRuns(t, 5, 0)
		h.checkIdle()
	})
}

// A client cancels, terminates or pauses while an inline activity runs. The context of the activity ends within about a
// second, and no worker runs the activity, except for a pause.
func TestR20_clientRequest_stopsARunningActivity(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.MessageKind{
		provider.MessageCancel, provider.MessageTerminate, provider.MessageCancelActivity,
		provider.MessageExecutionSuspended,
	} {
		var stopped time.Time
		w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
			err := sleepFor(ctx, 20*time.Second)
			if stopped.IsZero() {
				stopped = time.Now()
			}
			return n, err
		}}
		withInlineWork(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, nil, func(ctx context.Context, h *hub) {
			in := h.start("works", 1)
			queried := time.Now().Add(500 * time.Millisecond)
			time.AfterFunc(500*time.Millisecond, func() {
				m := provider.Message{Kind: kind, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested"}
				if kind == provider.MessageCancelActivity {
					m.ActivityID, m.ExecutionID, m.StartID = 3, in.ExecutionID, ""
				}
				if kind == provider.MessageExecutionSuspended {
					m.EventID = history.PauseIDPrefix + "1"
				}
				must(0, h.Provider.EnqueueForOrchestrator(ctx, m))
			})
			h.serveFor(time.Minute)
			if late := stopped.Sub(queried); late <= 0 || late > time.Second+100*time.Millisecond {
				t.Errorf("%s: the activity ended after %v, want at most 1.1s", kind, late)
			}
			now, err := h.Provider.ReadInstance(ctx, in.InstanceID)
			want := map[provider.MessageKind]provider.RuntimeStatus{
				provider.MessageCancel: provider.StatusCancelled, provider.MessageTerminate: provider.StatusTerminated,
				provider.MessageCancelActivity:     provider.StatusFailed,
				provider.MessageExecutionSuspended: provider.StatusPaused,
			}[kind]
			if err != nil || now.Status != want {
				t.Errorf("%s: the instance is %s, %v, want %s", kind, now.Status, err, want)
			}
			if kind != provider.MessageExecutionSuspended { // a pause does not stop attempts
				w.wantRuns(t, 1, 0)
			}
		})
	}
}

// A client's request also stops a chain of short inline activities.
func TestR20_clientRequest_stopsAChain(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		return n + 1, sleepFor(ctx, 100*time.Millisecond)
	}}
	withInlineWork(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
		in := h.start("works", 1000)
		time.AfterFunc(3*time.Second, func() {
			must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested",
			}))
		})
		began := time.Now()
		end := h.finish(in)
		took := end.Time.Sub(began)
		if end.Kind != history.OrchestrationCancelled || took > 4200*time.Millisecond {
			t.Errorf("ended with %s after %v, want cancelled within 4.2s", end.String(), took)
		}
		h.checkIdle()
	})
}

// ahead changes the time of later request notes, like a client whose clock is ahead.
func (h *hub) ahead(by time.Duration) {
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(in.Item, "pk"), "n#") {
			at := fmt.Sprint(time.Now().Add(by).UnixMilli())
			in.Item["askedAt"] = &ddbtypes.AttributeValueMemberN{Value: at}
		}
		return next()
	})
}

// A client's clock may be a few seconds ahead. A note that is further ahead is ignored. Otherwise, no invocation would
// run an inline activity for more than a second until that time.
func TestR20_clientClockIsFarAhead_noteIsIgnored(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{4 * time.Second, 6 * time.Second, time.Hour} {
		w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
			return n + 1, sleepFor(ctx, 100*time.Millisecond)
		}}
		withInlineWork(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
			h.ahead(by)
			in := h.start("works", 50)
			queried := time.Now().Add(500 * time.Millisecond)
			time.AfterFunc(500*time.Millisecond, func() {
				must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann")))
			})
			h.serveFor(30 * time.Second)
			first, outside := w.ran()
			if observed := first < 20; observed != (by < 5*time.Second) {
				t.Errorf("%v ahead: got %d runs before the pause of %v", by, first, queried)
			}
			must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
			if end := h.finish(in); string(end.Output) != "50" {
				t.Errorf("ended with %s %s, want 50", end.String(), end.Output)
			}
			if _, now := w.ran(); now != outside {
				t.Errorf("%v ahead: got %d activities sent to their queue after the pause, want none", by, now-outside)
			}
			h.checkIdle()
		})
	}
}

// An invocation reads the request note once a second, but not within the first second.
func TestR20_requestNote_isReadOncePerSecond(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]int{900 * time.Millisecond: 0, 4500 * time.Millisecond: 4} {
		w := &inlineWork{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, takes) }}
		withInlineWork(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, nil, func(_ context.Context, h *hub) {
			pollCount := 0
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "GetItem" {
					pollCount++
				}
				return next()
			})
			in := h.start("works", 1)
			pollCount = 0
			h.serveFor(20 * time.Second)
			if pollCount != want {
				t.Errorf("got %d reads in %v, want %d", pollCount, takes, want)
			}
			h.finish(in)
		})
	}
}

// A cancel that the invocation itself processes does not stop inline activities, so an undo can run inline.
func TestR20_invocationProcessesTheCancel_undoRunsInline(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) {
		return n, sleepFor(ctx, 1500*time.Millisecond)
	}}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_ = perdure.Sleep(ctx, time.Hour)
		return callWork(perdure.WithoutCancel(ctx), 1).Await(perdure.WithoutCancel(ctx))
	}
	withInlineWork(t, w, simhub.Options{}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 1)
		h.serveFor(time.Minute)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{
			Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested",
		}))
		h.finish(in)
		w.wantRuns(t, 1, 0)
		h.checkIdle()
	})
}

// An inline activity has at most a third of the function's timeout.
func TestR20_activity_hasAtMostAThirdOfTheFunctionTimeout(t *testing.T) {
	t.Parallel()
	var deadline time.Duration
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		at, ok := ctx.Deadline()
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" && ok {
			deadline = time.Until(at)
		}
		return n, nil
	}
	withInlineWork(t, w, simhub.Options{InvocationLimit: 3 * time.Second}, nil, func(_ context.Context, h *hub) {
		h.finish(h.start("works", 1))
		if deadline <= 0 || deadline > time.Second {
			t.Errorf("got %v of 3s for an inline activity, want at most 1s", deadline)
		}
	})
}

// An inline activity has at most the remaining time of the invocation minus a reserve for the commit. A chain of inline
// activities ends its invocation in time.
func TestR20_invocationIsNearItsEnd_activityLeavesTimeForTheCommit(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	const turns = limit * 3 / 4 // the time of turns, after which the context of their calls ends
	const reserve = turns / 4
	var latest time.Time // deadline of the activity whose commit is next
	w := &inlineWork{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if at, _ := ctx.Deadline(); perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			latest = at
		}
		return n + 1, sleepFor(ctx, 400*time.Millisecond)
	}
	withInlineWork(t, w, simhub.Options{InvocationLimit: limit}, nil, func(_ context.Context, h *hub) {
		steps, least := 0, turns
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if end, limited := ctx.Deadline(); limited && commitsSegment(c) && !latest.IsZero() {
				if left := end.Sub(latest); left < reserve {
					t.Errorf("an inline activity ended %v before the end of turns, want at least %v", left, reserve)
				}
				steps, latest, least = steps+1, time.Time{}, min(least, time.Until(end))
			}
			return next()
		})
		if end := h.finish(h.start("works", 20)); string(end.Output) != "20" {
			t.Errorf("ended with %s %s, want 20", end.String(), end.Output)
		}
		if steps < 20 || least < reserve || least > time.Second {
			t.Errorf("got %d commits of inline activities, the latest %v before the end of turns", steps, least)
		}
		h.checkIdle()
	})
}

// commitsSegment reports whether a call commits a segment.
func commitsSegment(c simaws.Call) bool {
	return slices.ContainsFunc(itemsPut(c), func(it map[string]ddbtypes.AttributeValue) bool {
		return strings.HasPrefix(text(it, "sk"), "h#")
	})
}

// A retry within a second runs in the invocation. For a longer retry interval, the activity is sent to its queue with
// the number of its next attempt. The limit applies to the interval of the policy, although the start time of an
// attempt is rounded up to milliseconds.
func TestR20_retryIntervalIsAtMostASecond_retryRunsInTheInvocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait            time.Duration
		inline, outside int
		took            time.Duration
	}{
		{200 * time.Millisecond, 3, 0, time.Second},
		{time.Second, 3, 0, 2100 * time.Millisecond},
		{time.Second + time.Millisecond, 1, 2, 5 * time.Second},
		{1500 * time.Millisecond, 1, 2, 6 * time.Second},
		{5 * time.Second, 1, 2, 20 * time.Second},
	} {
		w := &inlineWork{}
		w.code = func(ctx context.Context, n int) (int, error) {
			time.Sleep(1500 * time.Nanosecond) // moves the clock off whole milliseconds
			if a := perdure.ActivityInfoFrom(ctx).Attempt; a < 3 {
				return 0, fmt.Errorf("attempt %d", a)
			}
			return n, nil
		}
		body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return callWork(ctx, n, perdure.WithRetry(perdure.RetryPolicy{
				InitialInterval: c.wait, BackoffCoefficient: 1, MaxAttempts: 5, Jitter: perdure.NoJitter,
			})).Await(ctx)
		}
		withInlineWork(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, body, func(_ context.Context, h *hub) {
			in := h.start("works", 3)
			began := time.Now()
			if end := h.finish(in); string(end.Output) != "3" || end.Time.Sub(began) > c.took {
				t.Errorf("ended with %s %s after %v, want 3 within %v",
					end.String(), end.Output, end.Time.Sub(began), c.took)
			}
			if all, outside := w.ran(); all != c.inline+c.outside || outside != c.outside {
				t.Errorf("retry interval %v: got %d runs, %d of them in a worker", c.wait, all, outside)
			}
			for i, a := range w.runs {
				if a.Attempt != i+1 {
					t.Errorf("run %d has attempt %d", i+1, a.Attempt)
				}
			}
			h.checkIdle()
		})
	}
}

// An error, a panic, ErrPending or Goexit fails an inline activity like any other activity.
func TestR20_errorPanicPendingOrGoexit_failsTheActivity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code func() error
		want string
	}{
		"error":   {func() error { return errors.New("no") }, "no"},
		"panic":   {func() error { panic("oh") }, "oh"},
		"pending": {func() error { return perdure.ErrPending }, "perdure.Inline"},
		"goexit":  {func() error { runtime.Goexit(); return nil }, "Goexit"},
	} {
		w := &inlineWork{code: func(context.Context, int) (int, error) { return 0, c.code() }}
		withInlineWork(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
			end := h.finish(h.start("works", 1))
			if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, c.want) {
				t.Errorf("%s: ended with %s %v, want an error with %q", name, end.String(), end.Error, c.want)
			}
			w.wantRuns(t, 1, 0)
			h.checkIdle()
		})
	}
}

// An inline activity fails when its start-to-close timeout expires, regardless of its code.
func TestR20_startToCloseExpires_activityFails(t *testing.T) {
	t.Parallel()
	w := &inlineWork{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, time.Second) }}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return callWork(ctx, n, perdure.WithStartToCloseTimeout(300*time.Millisecond)).Await(ctx)
	}
	withInlineWork(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		end := h.finish(h.start("works", 1))
		if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, "start-to-close") {
			t.Errorf("ended with %s %v, want a start-to-close timeout", end.String(), end.Error)
		}
		w.wantRuns(t, 1, 0)
		h.checkIdle()
	})
}

// A call with WaitForCancellation is sent to its queue, because its end must be observable. A call with a heartbeat
// timeout, an exclusive key or AtMostOnce is also sent to its queue.
func TestR20_callWithWaitForCancellationOrKey_isSentToItsQueue(t *testing.T) {
	t.Parallel()
	for _, opt := range []perdure.ActivityCallOption{
		perdure.WaitForCancellation(), perdure.WithHeartbeatTimeout(time.Minute), perdure.Exclusive("k"),
		perdure.AtMostOnce(),
	} {
		w := &inlineWork{}
		body := func(ctx *perdure.OrchestrationContext, n int) (int, error) { return callWork(ctx, n, opt).Await(ctx) }
		withInlineWork(t, w, simhub.Options{Exclusive: true}, body, func(_ context.Context, h *hub) {
			in := h.start("works", 1)
			h.finish(in)
			w.wantRuns(t, 1, 1)
			if h.events(in)[2].Inline {
				t.Error("the activity is marked as inline")
			}
			h.checkIdle()
		})
	}
}

// An activity that is not registered in the orchestrator's build is sent to its queue.
func TestR20_activityIsNotRegistered_isSentToItsQueue(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	withInlineWork(t, w, simhub.Options{}, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivityByName[int](ctx, "elsewhere", 1, perdure.Inline())
		_, late := perdure.Select(ctx, f, perdure.CreateTimer(ctx, time.Minute))
		return 3, late
	}, func(_ context.Context, h *hub) {
		h.turn0(h.start("works", 1))
		if items := h.workItems(); len(items) != 1 || items[0].Name != "elsewhere" {
			t.Errorf("got %d work items, want one for elsewhere", len(items))
		}
	})
}

// turn0 runs the turn of a start.
func (h *hub) turn0(provider.Instance) { h.turn(0) }

// A cold environment replays the outcomes and does not run past inline activities again.
func TestR20_replay_runsNoActivity(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	body := func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if v, err = callWork(ctx, v).Await(ctx); err != nil {
				return 0, err
			}
			if err := perdure.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
		}
		return v, nil
	}
	withInlineWork(t, w, simhub.Options{CacheBytes: 1, Environments: 3}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 5)
		if end := h.finish(in); string(end.Output) != "5" {
			t.Errorf("ended with %s %s, want 5", end.String(), end.Output)
		}
		w.wantRuns(t, 5, 0)
		h.checkIdle()
	})
}

// Activity interceptors are called for inline activities.
func TestR20_interceptors_observeInlineActivities(t *testing.T) {
	t.Parallel()
	w := &inlineWork{}
	seen := 0
	see := perdure.Interceptor{Activity: func(
		ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
	) {
		if a.Name == "work" {
			seen++
		}
		next(ctx)
	}}
	withInlineWork(t, w, simhub.Options{Interceptors: []perdure.Interceptor{see}}, nil,
		func(_ context.Context, h *hub) {
			h.finish(h.start("works", 3))
			if seen != 3 {
				t.Errorf("got %d observed activities, want 3", seen)
			}
		})
}
