package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// "It cannot change an outcome": one that redacts what it exports writes to the failure that it was handed.
func TestAnInterceptorCannotChangeAnOutcome(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fails", func(context.Context, int) (int, error) { return 0, errors.New("card 4711 refused") })
	perdure.AddOrchestration(r, "calls", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "fails", 0, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Second})).Await(ctx)
		return err.Error(), nil
	})
	attempts := 0
	redacts := perdure.Interceptor{Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
		attempts++
		if res := next(ctx); res.Failure != nil {
			res.Failure.Message = "***"
			res.Failure.NonRetryable = true
		}
	}}
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{redacts}}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("calls", 0))
		if !strings.Contains(string(end.Output), "4711") || attempts != 2 {
			t.Errorf("the orchestration has got %s after %d attempts of 2", end.Output, attempts)
		}
	})
}

// The reason why an instance is blocked is the cached view's own.
func TestATurnsInterceptorCannotChangeWhyAnInstanceIsBlocked(t *testing.T) {
	t.Parallel()
	redacts := perdure.Interceptor{Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
		if res := next(ctx); res.Failure != nil {
			res.Failure.Type, res.Failure.Message = history.TypePoison, "***"
		}
	}}
	inBubble(t, simhub.Options{Registry: sleeper(1, "plus"), Interceptors: []perdure.Interceptor{redacts}}, func(_ context.Context, h *hub) {
		in := h.block(sleeper(1, "add"))
		h.raise(in, "e", 0)
		h.turn(0)
		parked := 0
		for _, e := range h.events(in) {
			if e.Kind != history.InputsParked {
				continue
			}
			parked++
			if e.Error == nil || e.Error.Type != history.TypeNondeterminism {
				t.Errorf("history has parked for %+v", e.Error)
			}
		}
		if parked < 2 {
			t.Errorf("%d times parked", parked)
		}
	})
}

// An activity's start-to-close time is over, and its interceptor has not come back (an exporter that hangs): the orchestration hears that
// its time is over.
func TestAnActivityIsOutOfTimeWhereItsInterceptorHangs(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				_, err := perdure.CallActivityByName[int](ctx, "inc", 0, perdure.WithStartToCloseTimeout(time.Minute)).Await(ctx)
				return fmt.Sprint(err), nil
			})
			release := make(chan struct{})
			hangs := perdure.Interceptor{Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
				if !before {
					next(ctx)
				}
				<-release
			}}
			inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{hangs}, InvocationLimit: 15 * time.Minute}, func(_ context.Context, h *hub) {
				release = make(chan struct{}) // in the bubble
				defer close(release)
				in := h.start("limited", 0)
				h.serveFor(30 * time.Minute)
				if now := h.read(in); now.Status != provider.StatusCompleted {
					t.Errorf("half an hour later, of a start-to-close time of a minute, the instance is %s", now.Status)
				}
			})
		})
	}
}

// The context that an interceptor passes on ends when it returns, as after defer cancel(): nothing of the turn may rest on it.
func TestAContextThatEndsWithTheInterceptorHarmsNothing(t *testing.T) {
	t.Parallel()
	ends := perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			next(ctx)
		},
		Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			next(ctx)
		},
	}
	for _, name := range []string{"chain", "fan", "retries", "statuses"} {
		inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{ends}}, func(_ context.Context, h *hub) {
			if end := h.finish(h.start(name, 3)); end.Kind != history.OrchestrationCompleted {
				t.Errorf("%s: %+v", name, end)
			}
			h.checkRest()
		})
	}
	inBubble(t, simhub.Options{Registry: versions("1"), Interceptors: []perdure.Interceptor{ends}}, func(_ context.Context, h *hub) {
		in := h.start("which", 2)
		h.serveFor(time.Minute)
		h.send(provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "a", Data: encoded(t, 1)},
			provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "b", Data: encoded(t, 2)})
		h.finish(in)
		h.checkRest()
	})
}

// next on another goroutine, late, twice, side by side, and with a context of its own.
func TestNextFromAnywhereIsOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	wild := perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			for range 3 {
				wg.Go(func() { next(ctx) })
			}
			wg.Go(func() { time.Sleep(time.Hour); next(context.Background()) })
			runtime.Gosched()
		},
		Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
			for range 3 {
				wg.Go(func() { next(ctx) })
			}
			panic("mine")
		},
	}
	for _, name := range []string{"chain", "fan", "retries", "statuses"} {
		inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{wild}}, func(_ context.Context, h *hub) {
			in := h.start(name, 3)
			if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
				t.Errorf("%s: %+v", name, end)
			}
			h.checkRest()
			wg.Wait()
		})
	}
}

// An interceptor's own deadline ends an activity early: that is the interceptor's, and not the orchestration's timeout.
func TestADeadlineOfAnInterceptorIsNoTimeoutOfThePolicy(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "waits", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	perdure.AddOrchestration(r, "waiting", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "waits", 0, perdure.WithStartToCloseTimeout(time.Hour)).Await(ctx)
		return err.Error(), nil
	})
	early := perdure.Interceptor{Activity: func(ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult) {
		ctx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		next(ctx)
	}}
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{early}}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("waiting", 0))
		t.Logf("%s", end.Output)
		if strings.Contains(string(end.Output), "start-to-close") {
			t.Errorf("%s", end.Output)
		}
	})
}

// An interceptor that takes the process down, at each turn of an instance, is not called around the turn that blocks it, and `why` names it: nothing
// else tells it from the code of the orchestration.
func TestAnInstanceWhoseInterceptorTakesTheProcessDownIsBlockedAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{}
			deadly := perdure.Interceptor{Turn: func(ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
				f.dies.Store(turn.Sequence > 1)
				next(ctx)
			}, OnTasks: func(context.Context, perdure.TurnTasks) {}}
			inBubble(t, simhub.Options{Registry: sleeper(1, "add"), Intercept: f.crash(), CacheBytes: cache, Interceptors: []perdure.Interceptor{deadly}}, func(_ context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.serveFor(time.Minute)
				h.raise(in, "e", 1)
				h.serveFor(2 * time.Hour)
				now := h.read(in)
				if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypePoison {
					t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
				}
				if named := "github.com/perdure/perdure/dispatch_test.TestAnInstanceWhoseInterceptorTakes"; !strings.Contains(now.Diagnosis.Message, "interceptor ("+named) || strings.Count(now.Diagnosis.Message, named) != 2 {
					t.Errorf("nobody would look at the interceptor: %s", now.Diagnosis.Message)
				}
			})
		})
	}
}
