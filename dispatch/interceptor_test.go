package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// turnRecorder records the calls of its interceptor.
type turnRecorder struct {
	mu         sync.Mutex
	turns      []perdure.TurnInfo
	results    []perdure.TurnResult
	activities []string
}

func (w *turnRecorder) interceptor() perdure.Interceptor {
	return perdure.Interceptor{
		Turn: func(ctx context.Context, t perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			r := next(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.turns, w.results = append(w.turns, t), append(w.results, r)
		},
		Activity: func(ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
			r := next(ctx)
			what := "ok"
			if r.Failure != nil {
				what = r.Failure.Message
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.activities = append(w.activities,
				fmt.Sprintf("%s #%d attempt %d: %s", a.Name, a.ActivityID, a.Attempt, what))
		},
	}
}

// sequences returns the sequence numbers of the observed turns.
func (w *turnRecorder) sequences() (all []int64) {
	for _, t := range w.turns {
		all = append(all, t.Sequence)
	}
	return all
}

// An interceptor observes each turn once, with its result. Replays are not observed, even without a cache.
func TestInterceptor_turn_isObservedOnceWithoutReplays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cache    int
		replayed []bool
	}{
		"warm": {0, []bool{true, false, false}},
		"cold": {-1, []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &turnRecorder{}
			inBubble(t, simhub.Options{CacheBytes: c.cache, Interceptors: []perdure.Interceptor{w.interceptor()}},
				func(_ context.Context, h *hub) {
					in := h.start("chain", 2)
					h.finish(in)
					info := perdure.TurnInfo{
						InstanceID: "i-1", ExecutionID: in.ExecutionID, Name: "chain", Version: "0", MessageCount: 1,
					}
					var want []perdure.TurnInfo
					for i, replayed := range c.replayed {
						info.Sequence, info.Replayed = int64(i+1), replayed
						if i > 0 {
							info.ScheduledByTurns = []int64{int64(i)} // the turn that scheduled the activity
						}
						want = append(want, info)
					}
					if diff := cmp.Diff(want, w.turns); diff != "" {
						t.Errorf("turns (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff([]perdure.TurnResult{
						{Committed: true, EventCount: 2, Status: history.StatusRunning},
						{Committed: true, EventCount: 3, Status: history.StatusRunning},
						{Committed: true, EventCount: 3, Status: history.StatusCompleted},
					}, w.results); diff != "" {
						t.Errorf("results (-want +got):\n%s", diff)
					}
					attempts := []string{"inc #3 attempt 1: ok", "inc #6 attempt 1: ok"}
					if !slices.Equal(w.activities, attempts) {
						t.Errorf("got activities %q, want %q", w.activities, attempts)
					}
				})
		})
	}
}

// 1. A turn cannot be committed, and SQS redelivers its message.
// 2. The turn runs again with the same sequence number, and the interceptor observes it again.
// 3. One of these turns is committed.
func TestInterceptor_turnIsRepeated_observesItAgain(t *testing.T) {
	t.Parallel()
	w := &turnRecorder{}
	inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{w.interceptor()}}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		refused := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000001") && refused < 20 {
				refused++
				return &ddbtypes.InternalServerError{Message: aws.String("not now")}
			}
			return next()
		})
		h.finish(in)
		last := len(w.turns) - 2
		if last < 1 {
			t.Fatalf("got turns %v, want at least one repeated turn", w.sequences())
		}
		for i, r := range w.results[:last] {
			if w.turns[i].Sequence != 1 || r.Committed || r.Err == nil {
				t.Errorf("try %d: turn %+v has result %+v, want an error", i, w.turns[i], r)
			}
		}
		if s := w.sequences()[last-1:]; !slices.Equal(s[len(s)-2:], []int64{1, 2}) || !w.results[last].Committed {
			t.Errorf("got turns %v with last result %+v of turn 1, want it committed", w.sequences(), w.results[last])
		}
	})
}

// Two processes run the same turn, for example after a lost lock. The interceptor observes the same sequence number in
// both, and only one result is committed.
func TestInterceptor_twoProcessesRunATurn_oneResultIsCommitted(t *testing.T) {
	t.Parallel()
	w := &turnRecorder{}
	inBubble(t, simhub.Options{Environments: 2, Interceptors: []perdure.Interceptor{w.interceptor()}},
		func(_ context.Context, h *hub) {
			in := h.start("fan", 2)
			h.turn(0)
			h.complete(in, 1, 3)
			h.turn(1) // environment 0 still has segment 1 in its cache
			h.complete(in, 1, 4)
			h.turn(0)
			committed := []bool{}
			for _, r := range w.results {
				committed = append(committed, r.Committed)
			}
			if !slices.Equal(w.sequences(), []int64{1, 2, 2, 3}) ||
				!slices.Equal(committed, []bool{true, true, false, true}) {
				t.Errorf("got turns %v, committed %v", w.sequences(), committed)
			}
		})
}

// The interceptor receives the failure of an orchestration that fails or is blocked.
func TestInterceptor_orchestrationFailsOrBlocks_receivesTheFailure(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "fails", func(*perdure.OrchestrationContext, int) (int, error) {
		return 0, errors.New("no luck")
	})
	perdure.AddOrchestration(r, "unknown", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivity(ctx, func(context.Context, int) (int, error) { return 0, nil }, 1).Await(ctx)
	})
	for name, want := range map[string]perdure.TurnResult{
		"fails": {
			Committed: true, EventCount: 2, Status: history.StatusFailed,
			Failure: &history.Failure{Type: "error", Message: "no luck"},
		},
		"unknown": {
			Committed: true, EventCount: 1, Status: history.StatusBlocked,
			Failure: &history.Failure{Type: history.TypeUnregistered},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &turnRecorder{}
			inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{w.interceptor()}},
				func(_ context.Context, h *hub) {
					h.start(name, 0)
					h.serveFor(10 * time.Minute)
					last := w.results[len(w.results)-1]
					if diff := cmp.Diff(want, last, cmpopts.IgnoreFields(history.Failure{}, "Message")); diff != "" {
						t.Errorf("mismatch (-want +got):\n%s", diff)
					}
				})
		})
	}
}

// Interceptors that break all rules do not change history or the calls.
func TestInterceptor_violatesItsContract_changesNothing(t *testing.T) {
	t.Parallel()
	run := func(is ...perdure.Interceptor) (kinds []history.Kind, calls map[string]int64) {
		inBubble(t, simhub.Options{Interceptors: is}, func(_ context.Context, h *hub) {
			in := h.start("retries", 3)
			h.Cloud.ResetCounts()
			h.finish(in)
			calls = h.Cloud.Counts()
			for _, e := range h.events(in) {
				kinds = append(kinds, e.Kind)
			}
			h.checkIdle()
		})
		return kinds, calls
	}
	wantKinds, wantCalls := run()
	gotKinds, gotCalls := run(
		perdure.Interceptor{
			Turn: func(context.Context, perdure.TurnInfo, func(context.Context) perdure.TurnResult) {
				panic("before")
			},
			Activity: func(context.Context, perdure.ActivityInfo, func(context.Context) perdure.ActivityResult) {},
		},
		perdure.Interceptor{
			Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
				next(ctx)
				next(ctx)
				panic("after")
			},
			Activity: func(
				ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
			) {
				next(ctx)
				panic("after")
			},
		},
	)
	if diff := cmp.Diff(wantKinds, gotKinds); diff != "" {
		t.Errorf("history (-without +with):\n%s", diff)
	}
	if diff := cmp.Diff(wantCalls, gotCalls); diff != "" {
		t.Errorf("calls (-without +with):\n%s", diff)
	}
}

// An interceptor observes each attempt with its failure. Activity code receives the context that the interceptor
// passes.
func TestInterceptor_activityIsRetried_observesEachAttempt(t *testing.T) {
	t.Parallel()
	type key struct{}
	w := &turnRecorder{}
	var seen []any
	r := registry()
	perdure.AddActivity(r, "looks", func(ctx context.Context, _ int) (int, error) {
		seen = append(seen, ctx.Value(key{}))
		if len(seen) < 2 {
			return 0, errors.New("look again")
		}
		return 0, nil
	})
	perdure.AddOrchestration(r, "look", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})
		return perdure.CallActivityByName[int](ctx, "looks", 0, retry).Await(ctx)
	})
	puts := perdure.Interceptor{Activity: func(
		ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
	) {
		next(context.WithValue(ctx, key{}, a.Attempt))
	}}
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{puts, w.interceptor()}},
		func(_ context.Context, h *hub) {
			h.finish(h.start("look", 0))
			want := []string{"looks #3 attempt 1: look again", "looks #3 attempt 2: ok"}
			if !slices.Equal(w.activities, want) || !slices.Equal(seen, []any{1, 2}) {
				t.Errorf("got activities %q with context values %v, want %q with 1 and 2", w.activities, seen, want)
			}
		})
}
