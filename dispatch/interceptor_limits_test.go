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

// An interceptor that redacts failures changes its own copy, not the outcome of the activity.
func TestInterceptor_changesAFailure_outcomeIsUnchanged(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fails", func(context.Context, int) (int, error) {
		return 0, errors.New("card 4711 refused")
	})
	perdure.AddOrchestration(r, "calls", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Second})
		_, err := perdure.CallActivityByName[int](ctx, "fails", 0, retry).Await(ctx)
		return err.Error(), nil
	})
	attempts := 0
	redacts := perdure.Interceptor{Activity: func(
		ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
	) {
		attempts++
		if res := next(ctx); res.Failure != nil {
			res.Failure.Message = "***"
			res.Failure.NonRetryable = true
		}
	}}
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{redacts}},
		func(_ context.Context, h *hub) {
			end := h.finish(h.start("calls", 0))
			if !strings.Contains(string(end.Output), "4711") || attempts != 2 {
				t.Errorf("the orchestration received %s after %d attempts, want the original error after 2",
					end.Output, attempts)
			}
		})
}

// An interceptor cannot change the diagnosis in the cached state of a blocked instance.
func TestInterceptor_changesADiagnosis_instanceKeepsIt(t *testing.T) {
	t.Parallel()
	redacts := perdure.Interceptor{Turn: func(
		ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult,
	) {
		if res := next(ctx); res.Failure != nil {
			res.Failure.Type, res.Failure.Message = history.TypePoison, "***"
		}
	}}
	inBubble(t, simhub.Options{Registry: sleeper(1, "plus"), Interceptors: []perdure.Interceptor{redacts}},
		func(_ context.Context, h *hub) {
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
					t.Errorf("got inputs parked because of %+v, want nondeterminism", e.Error)
				}
			}
			if parked < 2 {
				t.Errorf("got %d InputsParked events, want at least 2", parked)
			}
		})
}

// The start-to-close timeout of an activity expires while its interceptor hangs, for example in an exporter. The
// orchestration receives the timeout.
func TestInterceptor_hangs_activityTimesOut(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				timeout := perdure.WithStartToCloseTimeout(time.Minute)
				_, err := perdure.CallActivityByName[int](ctx, "inc", 0, timeout).Await(ctx)
				return fmt.Sprint(err), nil
			})
			release := make(chan struct{})
			hangs := perdure.Interceptor{Activity: func(
				ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
			) {
				if !before {
					next(ctx)
				}
				<-release
			}}
			o := simhub.Options{
				Registry: r, Interceptors: []perdure.Interceptor{hangs}, InvocationLimit: 15 * time.Minute,
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				release = make(chan struct{}) // belongs to the bubble of this test
				defer close(release)
				in := h.start("limited", 0)
				h.serveFor(30 * time.Minute)
				if now := h.read(in); now.Status != provider.StatusCompleted {
					t.Errorf("the instance is %s 29 minutes after the start-to-close timeout, want completed",
						now.Status)
				}
			})
		})
	}
}

// The context that an interceptor passes to next ends when the interceptor returns. Calls after the turn do not depend
// on that context.
func TestInterceptor_endsItsContext_changesNothing(t *testing.T) {
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
				t.Errorf("%s: got %+v", name, end)
			}
			h.checkIdle()
		})
	}
	inBubble(t, simhub.Options{Registry: versions("1"), Interceptors: []perdure.Interceptor{ends}},
		func(_ context.Context, h *hub) {
			in := h.start("which", 2)
			h.serveFor(time.Minute)
			h.send(
				provider.Message{
					Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "a",
					Data: encoded(t, 1),
				},
				provider.Message{
					Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "add", EventID: "b",
					Data: encoded(t, 2),
				})
			h.finish(in)
			h.checkIdle()
		})
}

// Interceptors call next from other goroutines, late, several times, concurrently, and with another context. The turn
// or activity runs once.
func TestInterceptor_callsNextConcurrently_runsOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	invalid := perdure.Interceptor{
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
		inBubble(t, simhub.Options{Interceptors: []perdure.Interceptor{invalid}}, func(_ context.Context, h *hub) {
			in := h.start(name, 3)
			if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
				t.Errorf("%s: got %+v", name, end)
			}
			h.checkIdle()
			wg.Wait()
		})
	}
}

// A deadline that an interceptor sets is not reported as the start-to-close timeout of the activity.
func TestInterceptor_setsADeadline_isNotReportedAsStartToClose(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "waits", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	perdure.AddOrchestration(r, "waiting", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		timeout := perdure.WithStartToCloseTimeout(time.Hour)
		_, err := perdure.CallActivityByName[int](ctx, "waits", 0, timeout).Await(ctx)
		return err.Error(), nil
	})
	early := perdure.Interceptor{Activity: func(
		ctx context.Context, _ perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
	) {
		ctx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		next(ctx)
	}}
	inBubble(t, simhub.Options{Registry: r, Interceptors: []perdure.Interceptor{early}},
		func(_ context.Context, h *hub) {
			end := h.finish(h.start("waiting", 0))
			t.Logf("%s", end.Output)
			if strings.Contains(string(end.Output), "start-to-close") {
				t.Errorf("got error %s, want another error than the start-to-close timeout", end.Output)
			}
		})
}

// An interceptor crashes the process in each turn of an instance. The session does not call it in the turn that blocks
// the instance, and the diagnosis names the interceptor.
func TestInterceptor_crashesTheProcess_diagnosisNamesIt(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{}
			crasher := perdure.Interceptor{Turn: func(
				ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult,
			) {
				f.dies.Store(turn.Sequence > 1)
				next(ctx)
			}, OnTasks: func(context.Context, perdure.TurnTasks) {}}
			o := simhub.Options{
				Registry: sleeper(1, "add"), Intercept: f.crash(), CacheBytes: cache,
				Interceptors: []perdure.Interceptor{crasher},
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.serveFor(time.Minute)
				h.raise(in, "e", 1)
				h.serveFor(2 * time.Hour)
				now := h.read(in)
				if now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
					now.Diagnosis.Type != history.TypePoison {
					t.Fatalf("the instance is %s with diagnosis %+v, want blocked as poison", now.Status, now.Diagnosis)
				}
				named := "github.com/perdure/perdure/dispatch_test.TestInterceptor_crashesTheProcess"
				message := now.Diagnosis.Message
				if !strings.Contains(message, "interceptor ("+named) || strings.Count(message, named) != 2 {
					t.Errorf("the diagnosis does not name both functions of the interceptor: %s", message)
				}
			})
		})
	}
}
