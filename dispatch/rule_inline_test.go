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

// Races of inline activities, one test each (R20 in docs/internals/rules.md).

// workshop is where inline activities run: it knows how often, and where.
type workshop struct {
	code func(ctx context.Context, n int) (int, error)

	mu   sync.Mutex
	runs []perdure.ActivityInfo
}

func (w *workshop) work(ctx context.Context, n int) (int, error) {
	w.mu.Lock()
	w.runs = append(w.runs, perdure.ActivityInfoFrom(ctx))
	w.mu.Unlock()
	if w.code == nil {
		return n + 1, nil
	}
	return w.code(ctx, n)
}

// ran is how often the code has run; of which in a worker, as its token shows.
func (w *workshop) ran() (all, outside int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.runs {
		if w.runs[i].CompletionToken != "" {
			outside++
		}
	}
	return len(w.runs), outside
}

// wantRuns fails unless the code has run so often, and so often in a worker.
func (w *workshop) wantRuns(t *testing.T, all, outside int) {
	t.Helper()
	if a, o := w.ran(); a != all || o != outside {
		t.Errorf("%d runs, %d of them in a worker: want %d and %d", a, o, all, outside)
	}
}

// registry has "work", which is inline, and what calls it: n times one after the other, n times side by side, and what the function says.
func (w *workshop) registry(body func(ctx *perdure.OrchestrationContext, n int) (int, error)) *perdure.Registry {
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

func callWork(ctx *perdure.OrchestrationContext, n int, opts ...perdure.ActivityCallOption) *perdure.Future[int] {
	return perdure.CallActivityByName[int](ctx, "work", n, opts...)
}

// inWorkshop is inBubble with a workshop's registry.
func inWorkshop(t *testing.T, w *workshop, o simhub.Options, body func(*perdure.OrchestrationContext, int) (int, error), f func(ctx context.Context, h *hub)) {
	t.Helper()
	o.Registry = w.registry(body)
	inBubble(t, o, f)
}

// until waits for a time, or for the end of ctx.
func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A body that takes its process down does so in the invocation once, and then in a worker, where poison is the activity's: the instance goes on.
func TestR20AProcessThatDiesInABodySendsTheStepToItsQueue(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			simhub.Die(ctx)
		}
		return n + 1, nil
	}
	inWorkshop(t, w, simhub.Options{Intercept: simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })}, nil, func(_ context.Context, h *hub) {
		in := h.start("works", 2)
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 4, 2) // each died inline, and ran in a worker
		h.checkRest()
	})
}

// A body that kills whoever runs it ends as any activity does.
func TestR20AStepThatKillsItsProcessIsPoisonAndItsInstanceIsNot(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	w.code = func(ctx context.Context, n int) (int, error) {
		simhub.Die(ctx)
		return n, nil
	}
	never := simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })
	inWorkshop(t, w, simhub.Options{Intercept: never, MaxAttempts: 2}, nil, func(_ context.Context, h *hub) {
		end := h.finish(h.start("works", 1))
		if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, "crashed the process") {
			t.Errorf("ended with %s %v", end.String(), end.Error)
		}
		if all, outside := w.ran(); all-outside != 1 {
			t.Errorf("%d runs inline", all-outside)
		}
	})
}

// An outcome that is committed is taken by the next turn, wherever that runs: the step does not run again (I2).
func TestR20WhatIsCommittedDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		w := &workshop{}
		crash, crashed := crashOnce(true, func(c simaws.Call) bool { return isCommit(c, fmt.Sprintf("h#%010d", n)) })
		inWorkshop(t, w, simhub.Options{Intercept: crash}, nil, func(_ context.Context, h *hub) {
			if end := h.finish(h.start("works", 3)); string(end.Output) != "3" || !crashed.Load() {
				t.Errorf("ended with %s %s, crashed %v", end.String(), end.Output, crashed.Load())
			}
			outside := 1 // the step behind the crash
			if n == 3 {
				outside = 0
			}
			w.wantRuns(t, 3, outside)
			h.checkRest()
		})
	}
}

// A step that runs on through a commit whose process then dies is sent by the redispatch.
func TestR20AStepThatRanWhenItsProcessDiedIsSent(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, n int) (int, error) {
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
	inWorkshop(t, w, simhub.Options{Intercept: crash}, both, func(_ context.Context, h *hub) {
		if end := h.finish(h.start("works", 0)); string(end.Output) != "1000" || !crashed.Load() {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 3, 1)
		h.checkRest()
	})
}

// A process that was frozen in a step, while another went on, commits nothing: its outcome is not the one that counts, whether the instance has ended
// meanwhile or still waits for the worker.
func TestR20AThawedStepIsAConflict(t *testing.T) {
	t.Parallel()
	for _, works := range []time.Duration{0, time.Hour} {
		w := &workshop{}
		w.code = func(ctx context.Context, _ int) (int, error) {
			if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
				time.Sleep(30 * time.Minute)
				return 1, nil
			}
			return 2, sleepFor(ctx, works)
		}
		inWorkshop(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
			stopped := time.Now() // in a function that is frozen no time passes
			o := must(dispatch.NewOrchestrator(w.registry(nil), h.Provider, &dispatch.OrchestratorOptions{BuildID: "test", Logger: h.logger(), Clock: func() time.Time { return stopped }}))
			defer o.Close()
			var frozen atomic.Int64
			h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
				if ctx.Value(deathly{}) != nil && isCommit(c, "h#0000000001") {
					frozen.Add(1)
				}
				return next()
			})
			in := h.start("works", 1)
			over := make(chan []string, 1)
			records := h.receive(h.Provider.Config().InboxURL)
			go func() { over <- o.HandleRecords(context.WithValue(ctx, deathly{}, true), records) }()
			h.serveFor(20 * time.Minute)
			w.wantRuns(t, 2, 1)
			if failed := <-over; len(failed) > 0 || frozen.Load() != 1 {
				t.Errorf("thawed: failed %v after %d commits", failed, frozen.Load())
			}
			if end := h.finish(in); string(end.Output) != "2" {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.checkRest()
		})
	}
}

// What is warm is looked at, strongly consistent, before the first step runs: a turn of another process may have cancelled the instance (I6).
func TestR20AStaleViewRunsNoStep(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx); err != nil {
			return -1, nil //nolint:nilerr // it is cancelled, and ends so
		}
		return callWork(ctx, 1).Await(ctx)
	}
	inWorkshop(t, w, simhub.Options{Environments: 2}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 0)
		h.turn(0) // it is warm there
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested"}))
		h.turn(1)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "go", EventID: "e", Data: history.Payload("1")}))
		h.turn(0)
		w.wantRuns(t, 0, 0)
		h.finish(in)
		h.checkRest()
	})
}

// An outcome that comes while the commit is under way that sends its step is dropped: the worker's counts (I7).
func TestR20AnOutcomeBehindTheCommitThatSendsItsStepIsDropped(t *testing.T) {
	t.Parallel()
	release := make(chan struct{}, 1)
	w := &workshop{}
	inWorkshop(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		let := make(chan struct{})
		w.code = func(ctx context.Context, _ int) (int, error) {
			if perdure.ActivityInfoFrom(ctx).CompletionToken != "" {
				return 2, nil
			}
			<-let // it does not heed its end
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
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 2, 1)
		h.checkRest()
	})
	close(release)
}

// The commit that sends a step fails, and its answer is lost: it is found by its nonce, and the step is not run inline as well.
func TestR20ALostAnswerOfTheCommitThatSendsAStep(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, _ int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			return 1, sleepFor(ctx, time.Minute)
		}
		return 2, nil
	}}
	lost := 0
	var looks atomic.Int64
	var isLost, sent atomic.Bool
	inWorkshop(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch {
			case !isLost.Load():
			case c.Operation == "SendMessageBatch":
				sent.Store(true)
			case c.Operation == "Query" && !sent.Load():
				looks.Add(1)
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
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 2, 1)
		if n := looks.Load(); n > 0 {
			t.Errorf("%d looks at history before the step was sent: its commit was taken for another's", n)
		}
		h.checkRest()
	})
}

// Code that ignores the end of its context is given up after a moment, and an environment that has several of it takes no more steps.
func TestR20BodiesThatIgnoreTheirEndAreCountedAsLeaks(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			time.Sleep(time.Hour)
		}
		return n + 1, nil
	}
	inWorkshop(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
		in := h.start("works", 6)
		began := time.Now()
		if end := h.finish(in); string(end.Output) != "6" || end.Time.Sub(began) > time.Minute {
			t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
		}
		w.wantRuns(t, 9, 6) // three leaked, and the environment has taken no more
	})
}

// The first of a race is committed with what else the turn has decided, and the timer that it races with is on its way.
func TestR20ARaceWithATimer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takes, fires time.Duration
		want         string
	}{{500 * time.Millisecond, time.Minute, "0"}, {10 * time.Second, 5 * time.Second, "1"}} {
		w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, c.takes) }}
		race := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.Select(ctx, callWork(ctx, 1), perdure.CreateTimer(ctx, c.fires))
		}
		inWorkshop(t, w, simhub.Options{}, race, func(_ context.Context, h *hub) {
			in := h.start("works", 0)
			began := time.Now()
			end := h.finish(in)
			if string(end.Output) != c.want || end.Time.Sub(began) > c.fires+2*time.Second {
				t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
			}
			h.checkRest()
		})
	}
}

// A thousand steps that are awaited together run side by side, so many at once, and are one commit.
func TestR20AThousandStepsAtOnce(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	w := &workshop{code: func(ctx context.Context, n int) (int, error) {
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
	inWorkshop(t, w, simhub.Options{}, all, func(_ context.Context, h *hub) {
		h.Cloud.ResetCounts()
		if end := h.finish(h.start("works", 1000)); string(end.Output) != "499500" || most.Load() != 100 {
			t.Errorf("ended with %s %s, %d at once", end.String(), end.Output, most.Load())
		}
		w.wantRuns(t, 1000, 0)
		h.checkRest()
	})
}

// Results that are more than a commit holds are taken in parts, and nothing runs again.
func TestR20ResultsThatAreLargerThanACommit(t *testing.T) {
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
			t.Errorf("ended with %s %s %v, %d runs", end.String(), end.Output, end.Error, ran.Load())
		}
		h.checkRest()
	})
}

// What runs when the instance continues as new is cancelled, and not sent.
func TestR20WhatRunsAtContinueAsNewIsCancelled(t *testing.T) {
	t.Parallel()
	var why atomic.Value
	w := &workshop{code: func(ctx context.Context, n int) (int, error) {
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
	inWorkshop(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		in := h.start("works", 2)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "7" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 4, 0)
		if why.Load() == nil {
			t.Error("the step that ran was not stopped")
		}
		if n := h.Cloud.Counts()["SQS.SendMessageBatch"]; n != 0 {
			t.Errorf("%d messages were sent", n)
		}
		h.checkRest()
	})
}

// A chain that holds its instance for ten seconds lets others have it: an event is taken meanwhile.
func TestR20AChainMakesWayForMessages(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n + 1, sleepFor(ctx, 100*time.Millisecond) }}
	body := func(ctx *perdure.OrchestrationContext, n int) (done int, err error) {
		stop := perdure.WaitForExternalEvent[int](ctx, "stop")
		for ; done < n && !stop.IsDone(); done++ {
			if _, err := callWork(ctx, done).Await(ctx); err != nil {
				return 0, err
			}
		}
		return done, nil
	}
	inWorkshop(t, w, simhub.Options{}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 1000)
		time.AfterFunc(time.Second, func() {
			must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "stop", EventID: "e", Data: history.Payload("1")}))
		})
		began := time.Now()
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted || end.Time.Sub(began) > 12*time.Second {
			t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
		}
		h.checkRest()
	})
}

// A pause that lies in the batch behind the trigger comes before the next step's turn.
func TestR20APauseBehindTheTriggerStopsTheChain(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	inWorkshop(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
		in := h.start("works", 5)
		order := provider.Message{Kind: provider.MessageExecutionSuspended, InstanceID: in.InstanceID, StartID: in.StartID, EventID: history.PauseIDPrefix + "1"}
		must(0, h.Provider.EnqueueForOrchestrator(ctx, order))
		h.serveFor(time.Minute)
		w.wantRuns(t, 1, 0)
		order.Kind, order.EventID = provider.MessageExecutionResumed, history.PauseIDPrefix+"2"
		must(0, h.Provider.EnqueueForOrchestrator(ctx, order))
		if end := h.finish(in); string(end.Output) != "5" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 5, 0)
		h.checkRest()
	})
}

// Whoever cancels, terminates or pauses while a step runs is heard within two seconds: the step's context ends, and no worker runs it.
func TestR20ARequestFromOutsideStopsWhatRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.MessageKind{provider.MessageCancel, provider.MessageTerminate, provider.MessageCancelActivity, provider.MessageExecutionSuspended} {
		var stopped time.Time
		w := &workshop{code: func(ctx context.Context, n int) (int, error) {
			err := sleepFor(ctx, 20*time.Second)
			if stopped.IsZero() {
				stopped = time.Now()
			}
			return n, err
		}}
		inWorkshop(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, nil, func(ctx context.Context, h *hub) {
			in := h.start("works", 1)
			asked := time.Now().Add(500 * time.Millisecond)
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
			if late := stopped.Sub(asked); late <= 0 || late > time.Second+100*time.Millisecond {
				t.Errorf("%s: the step ended %v behind it", kind, late)
			}
			now, err := h.Provider.ReadInstance(ctx, in.InstanceID)
			want := map[provider.MessageKind]provider.RuntimeStatus{
				provider.MessageCancel: provider.StatusCancelled, provider.MessageTerminate: provider.StatusTerminated,
				provider.MessageCancelActivity: provider.StatusFailed, provider.MessageExecutionSuspended: provider.StatusPaused,
			}[kind]
			if err != nil || now.Status != want {
				t.Errorf("%s: it is %s, %v", kind, now.Status, err)
			}
			if kind != provider.MessageExecutionSuspended { // attempts of a paused instance go on
				w.wantRuns(t, 1, 0)
			}
		})
	}
}

// A chain of short steps makes way as well.
func TestR20ARequestFromOutsideStopsAChain(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n + 1, sleepFor(ctx, 100*time.Millisecond) }}
	inWorkshop(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
		in := h.start("works", 1000)
		time.AfterFunc(3*time.Second, func() {
			must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested"}))
		})
		began := time.Now()
		if end := h.finish(in); end.Kind != history.OrchestrationCancelled || end.Time.Sub(began) > 4200*time.Millisecond {
			t.Errorf("ended with %s after %v", end.String(), end.Time.Sub(began))
		}
		h.checkRest()
	})
}

// ahead has the notes that are made from now on say so much later a time, as those of a client do whose clock is ahead.
func (h *hub) ahead(by time.Duration) {
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(in.Item, "pk"), "n#") {
			in.Item["askedAt"] = &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(by).UnixMilli())}
		}
		return next()
	})
}

// A clock of who asks that is a little ahead is no matter. A note of one that is an hour ahead is not heeded: for that hour no invocation would run a
// step for more than a second.
func TestR20ANoteOfAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{4 * time.Second, 6 * time.Second, time.Hour} {
		w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n + 1, sleepFor(ctx, 100*time.Millisecond) }}
		inWorkshop(t, w, simhub.Options{}, nil, func(ctx context.Context, h *hub) {
			h.ahead(by)
			in := h.start("works", 50)
			asked := time.Now().Add(500 * time.Millisecond)
			time.AfterFunc(500*time.Millisecond, func() { must(0, h.Provider.EnqueueForOrchestrator(ctx, pauseMessage(in, "1", "ann"))) })
			h.serveFor(30 * time.Second)
			first, outside := w.ran()
			if heeded := first < 20; heeded != (by < 5*time.Second) {
				t.Errorf("%v ahead: %d steps were run before the pause of %v", by, first, asked)
			}
			must(0, h.Provider.EnqueueForOrchestrator(ctx, resumeMessage(in, "2", "ann")))
			if end := h.finish(in); string(end.Output) != "50" {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			if _, now := w.ran(); now != outside {
				t.Errorf("%v ahead: %d steps were sent to their queue after the pause", by, now-outside)
			}
			h.checkRest()
		})
	}
}

// The note is looked for once a second at the most, and not at all within the first.
func TestR20HowOftenAnInvocationLooks(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]int{900 * time.Millisecond: 0, 4500 * time.Millisecond: 4} {
		w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, takes) }}
		inWorkshop(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, nil, func(_ context.Context, h *hub) {
			looks := 0
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "GetItem" {
					looks++
				}
				return next()
			})
			in := h.start("works", 1)
			looks = 0
			h.serveFor(20 * time.Second)
			if looks != want {
				t.Errorf("%d looks in %v, want %d", looks, takes, want)
			}
			h.finish(in)
		})
	}
}

// A cancel that the invocation holds itself is no reason to make way: what undoes runs inline.
func TestR20ACancelThatIsHeldStopsNoStep(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, 1500*time.Millisecond) }}
	body := func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		_ = perdure.Sleep(ctx, time.Hour)
		return callWork(perdure.WithoutCancel(ctx), 1).Await(perdure.WithoutCancel(ctx))
	}
	inWorkshop(t, w, simhub.Options{}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 1)
		h.serveFor(time.Minute)
		must(0, h.Provider.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: "requested"}))
		h.finish(in)
		w.wantRuns(t, 1, 0)
		h.checkRest()
	})
}

// A third of the function's timeout is the most that a step has.
func TestR20AStepHasAThirdOfTheFunctionsTimeout(t *testing.T) {
	t.Parallel()
	var deadline time.Duration
	w := &workshop{}
	w.code = func(ctx context.Context, n int) (int, error) {
		at, ok := ctx.Deadline()
		if perdure.ActivityInfoFrom(ctx).CompletionToken == "" && ok {
			deadline = time.Until(at)
		}
		return n, nil
	}
	inWorkshop(t, w, simhub.Options{InvocationLimit: 3 * time.Second}, nil, func(_ context.Context, h *hub) {
		h.finish(h.start("works", 1))
		if deadline <= 0 || deadline > time.Second {
			t.Errorf("a step has %v of 3 s", deadline)
		}
	})
}

// What an invocation has left, less the reserve for the commit, is the most that a step has: a chain of steps ends its invocation in time.
func TestR20AStepEndsBeforeItsInvocationDoes(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	const turns = limit * 3 / 4 // what the turns of an invocation have: the context of their calls ends then
	const reserve = turns / 4
	var latest time.Time // until when the step had that the next commit is of
	w := &workshop{}
	w.code = func(ctx context.Context, n int) (int, error) {
		if at, _ := ctx.Deadline(); perdure.ActivityInfoFrom(ctx).CompletionToken == "" {
			latest = at
		}
		return n + 1, sleepFor(ctx, 400*time.Millisecond)
	}
	inWorkshop(t, w, simhub.Options{InvocationLimit: limit}, nil, func(_ context.Context, h *hub) {
		steps, least := 0, turns
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if end, limited := ctx.Deadline(); limited && putsSegment(c) && !latest.IsZero() {
				if left := end.Sub(latest); left < reserve {
					t.Errorf("a step had until %v before the end of its turns, want %v", left, reserve)
				}
				steps, latest, least = steps+1, time.Time{}, min(least, time.Until(end))
			}
			return next()
		})
		if end := h.finish(h.start("works", 20)); string(end.Output) != "20" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		if steps < 20 || least < reserve || least > time.Second {
			t.Errorf("%d commits behind steps, the latest %v before the end of its turns", steps, least)
		}
		h.checkRest()
	})
}

// putsSegment reports whether a call commits a segment.
func putsSegment(c simaws.Call) bool {
	return slices.ContainsFunc(itemsPut(c), func(it map[string]ddbtypes.AttributeValue) bool { return strings.HasPrefix(text(it, "sk"), "h#") })
}

// What is retried within a second is made in the invocation; a longer wait leaves it, with the attempt that is next. The wait is that of the policy:
// the time of an attempt is rounded up to milliseconds.
func TestR20RetriesWithinASecondAreMadeInTheInvocation(t *testing.T) {
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
		w := &workshop{}
		w.code = func(ctx context.Context, n int) (int, error) {
			time.Sleep(1500 * time.Nanosecond) // no clock is at whole milliseconds
			if a := perdure.ActivityInfoFrom(ctx).Attempt; a < 3 {
				return 0, fmt.Errorf("attempt %d", a)
			}
			return n, nil
		}
		body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return callWork(ctx, n, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: c.wait, BackoffCoefficient: 1, MaxAttempts: 5, Jitter: perdure.NoJitter})).Await(ctx)
		}
		inWorkshop(t, w, simhub.Options{InlineTimeout: 30 * time.Second}, body, func(_ context.Context, h *hub) {
			in := h.start("works", 3)
			began := time.Now()
			if end := h.finish(in); string(end.Output) != "3" || end.Time.Sub(began) > c.took {
				t.Errorf("ended with %s %s after %v", end.String(), end.Output, end.Time.Sub(began))
			}
			if all, outside := w.ran(); all != c.inline+c.outside || outside != c.outside {
				t.Errorf("a wait of %v: %d runs, %d of them in a worker", c.wait, all, outside)
			}
			for i, a := range w.runs {
				if a.Attempt != i+1 {
					t.Errorf("run %d is attempt %d", i+1, a.Attempt)
				}
			}
			h.checkRest()
		})
	}
}

// Panics, errors, ErrPending and a goroutine that is ended are failures as ever.
func TestR20AStepFailsAsAnyActivityDoes(t *testing.T) {
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
		w := &workshop{code: func(context.Context, int) (int, error) { return 0, c.code() }}
		inWorkshop(t, w, simhub.Options{}, nil, func(_ context.Context, h *hub) {
			end := h.finish(h.start("works", 1))
			if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, c.want) {
				t.Errorf("%s: ended with %s %v", name, end.String(), end.Error)
			}
			w.wantRuns(t, 1, 0)
			h.checkRest()
		})
	}
}

// A step whose start-to-close time is over has failed, whatever its code does.
func TestR20StartToCloseOfAStep(t *testing.T) {
	t.Parallel()
	w := &workshop{code: func(ctx context.Context, n int) (int, error) { return n, sleepFor(ctx, time.Second) }}
	body := func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return callWork(ctx, n, perdure.WithStartToCloseTimeout(300*time.Millisecond)).Await(ctx)
	}
	inWorkshop(t, w, simhub.Options{}, body, func(_ context.Context, h *hub) {
		end := h.finish(h.start("works", 1))
		if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, "start-to-close") {
			t.Errorf("ended with %s %v", end.String(), end.Error)
		}
		w.wantRuns(t, 1, 0)
		h.checkRest()
	})
}

// A call whose end is waited for goes to its worker queue: what must be undone must not run unseen. So does one with a key, which a queue holds, and one that
// runs at most once.
func TestR20WhatIsWaitedForIsNotInline(t *testing.T) {
	t.Parallel()
	for _, opt := range []perdure.ActivityCallOption{perdure.WaitForCancellation(), perdure.WithHeartbeatTimeout(time.Minute), perdure.Exclusive("k"), perdure.AtMostOnce()} {
		w := &workshop{}
		body := func(ctx *perdure.OrchestrationContext, n int) (int, error) { return callWork(ctx, n, opt).Await(ctx) }
		inWorkshop(t, w, simhub.Options{Exclusive: true}, body, func(_ context.Context, h *hub) {
			in := h.start("works", 1)
			h.finish(in)
			w.wantRuns(t, 1, 1)
			if h.events(in)[2].Inline {
				t.Error("it is marked")
			}
			h.checkRest()
		})
	}
}

// What the orchestrator's build does not have runs in its worker.
func TestR20AStepThatIsNotRegisteredGoesToItsQueue(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	inWorkshop(t, w, simhub.Options{}, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivityByName[int](ctx, "elsewhere", 1, perdure.Inline())
		_, late := perdure.Select(ctx, f, perdure.CreateTimer(ctx, time.Minute))
		return 3, late
	}, func(_ context.Context, h *hub) {
		h.turn0(h.start("works", 1))
		if items := h.workItems(); len(items) != 1 || items[0].Name != "elsewhere" {
			t.Errorf("%d work items", len(items))
		}
	})
}

// turn0 runs what the start has led to.
func (h *hub) turn0(provider.Instance) { h.turn(0) }

// A cold environment replays the outcomes, and runs no step of the past again.
func TestR20AReplayRunsNoStep(t *testing.T) {
	t.Parallel()
	w := &workshop{}
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
	inWorkshop(t, w, simhub.Options{CacheBytes: 1, Environments: 3}, body, func(ctx context.Context, h *hub) {
		in := h.start("works", 5)
		if end := h.finish(in); string(end.Output) != "5" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		w.wantRuns(t, 5, 0)
		h.checkRest()
	})
}

// Interceptors of activities are called around steps.
func TestR20InterceptorsSeeSteps(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	seen := 0
	see := perdure.Interceptor{Activity: func(ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
		if a.Name == "work" {
			seen++
		}
		next(ctx)
	}}
	inWorkshop(t, w, simhub.Options{Interceptors: []perdure.Interceptor{see}}, nil, func(_ context.Context, h *hub) {
		h.finish(h.start("works", 3))
		if seen != 3 {
			t.Errorf("%d steps were seen", seen)
		}
	})
}
