package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// stepRegistry returns a registry with an activity of several steps of a minute that continues from its heartbeat
// details. If stuckFrom is not 0, the activity makes no progress after that step. An orchestration calls the activity
// with a policy.
func stepRegistry(steps, stuckFrom int, policy perdure.RetryPolicy) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "steps", func(ctx context.Context, _ int) (int, error) {
		done, _ := perdure.HeartbeatDetails[int](ctx)
		for done < steps {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
			if stuckFrom == 0 || done < stuckFrom {
				done++
			}
			perdure.Heartbeat(ctx, done)
		}
		return done, nil
	})
	perdure.AddOrchestration(r, "long", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "steps", 0, perdure.WithRetry(policy)).Await(ctx)
	})
	return r
}

// An activity may take fifty invocations if each leaves a heartbeat to continue from.
func TestActivity_makesProgress_mayTakeFiftyInvocations(t *testing.T) {
	t.Parallel()
	r := stepRegistry(50, 0, perdure.RetryPolicy{MaxAttempts: 1})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("long", 0)
		h.turn(0)
		deliveries := h.serveInvocations(ctx, r, 2*time.Minute)
		end := h.finish(in)
		t.Logf("%d deliveries over %v", deliveries, end.Time.Sub(in.CreatedAt))
		if end.Kind != history.OrchestrationCompleted || string(end.Output) != "50" || deliveries < 50 {
			t.Errorf("after %d deliveries: ended with %s, output %s, error %+v",
				deliveries, end.Kind, end.Output, end.Error)
		}
		h.checkIdle()
	})
}

// An activity that stops making progress fails with a timeout after three more deliveries.
func TestActivity_stopsMakingProgress_fails(t *testing.T) {
	t.Parallel()
	r := stepRegistry(50, 5, perdure.RetryPolicy{MaxAttempts: 1})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("long", 0)
		h.turn(0)
		deliveries := h.serveInvocations(ctx, r, 2*time.Minute)
		end := h.finish(in)
		if end.Kind != history.OrchestrationFailed || end.Error.Cause == nil ||
			end.Error.Cause.Type != history.TypeTimeout || deliveries != 8 {
			t.Errorf("after %d deliveries: ended with %s %+v", deliveries, end.Kind, end.Error)
		}
	})
}

// An activity whose processes are killed is not poison while each process leaves a heartbeat with progress. Without
// progress, the activity is poison after the usual number of crashes.
func TestR13_processesAreKilled_activityIsPoisonOnlyWithoutProgress(t *testing.T) {
	t.Parallel()
	for name, stuckFrom := range map[string]int{"progress": 0, "progress that ends": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := stepRegistry(50, stuckFrom, perdure.RetryPolicy{MaxAttempts: 1})
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				in := h.start("long", 0)
				h.turn(0)
				deliveries := h.killWorkers(ctx, r, 150*time.Second)
				end := h.finish(in)
				t.Logf("%d deliveries over %v: %s", deliveries, end.Time.Sub(in.CreatedAt), end.Kind)
				if stuckFrom == 0 && (end.Kind != history.OrchestrationCompleted || string(end.Output) != "50") {
					t.Errorf("after %d deliveries: ended with %s, output %s, error %+v",
						deliveries, end.Kind, end.Output, end.Error)
				}
				const crashCount = 13 // counted crashes, after processes of two steps each
				if stuckFrom > 0 && (end.Error == nil || end.Error.Cause == nil ||
					end.Error.Cause.Type != history.TypePoison || deliveries > stuckFrom/2+crashCount) {
					t.Errorf("after %d deliveries: ended with %s %+v, want poison", deliveries, end.Kind, end.Error)
				}
			})
		})
	}
}

// killWorkers passes records of the work queue to workers whose processes are killed after the given time, until none
// is left. It returns the number of deliveries.
func (h *hub) killWorkers(ctx context.Context, r *perdure.Registry, lifetime time.Duration) (deliveries int) {
	h.interfere(hang(time.Now(), nil, false))
	for idle := 0; idle < 60; idle++ {
		if records := h.receive("sim://default"); len(records) > 0 {
			idle, deliveries = 0, deliveries+len(records)
			w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)}))
			go w.HandleRecords(context.WithValue(ctx, function{}, time.Now().Add(lifetime)), records)
		}
		time.Sleep(10 * time.Second)
	}
	return deliveries
}

// function is the context key of a function's deadline, at which it is killed.
type function struct{}

// invoke passes records to a function like Lambda, and deletes the processed records.
func (h *hub) invoke(
	ctx context.Context, queue string, timeout time.Duration, handle func(context.Context, []provider.Record) []string,
	records []provider.Record,
) {
	end := time.Now().Add(timeout)
	limited, stop := context.WithDeadline(context.WithValue(ctx, function{}, end), end)
	defer stop()
	failed := handle(limited, records)
	if !time.Now().Before(end) {
		return // the function was killed
	}
	for _, r := range records {
		if !slices.Contains(failed, r.ID) {
			_ = h.Provider.DeleteRecords(ctx, queue, r)
		}
	}
}

// Calls hang for an hour, and the functions are killed at their deadlines. Healthy code does not become poison.
func TestR13_callsHangForAnHour_nothingIsPoison(t *testing.T) {
	t.Parallel()
	services := map[string]func(simaws.Call) bool{
		"everything": func(simaws.Call) bool { return true },
		"the table":  func(c simaws.Call) bool { return c.Service == "DynamoDB" },
		"the queues": func(c simaws.Call) bool { return c.Service == "SQS" },
		"commits": func(c simaws.Call) bool {
			return c.Operation == "PutItem" || c.Operation == "TransactWriteItems"
		},
		"marks": func(c simaws.Call) bool { return c.Operation == "UpdateItem" },
	}
	for name, affected := range services {
		for _, done := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: ", though they are done"}[done], func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
					in := h.start("chain", 3)
					began := time.Now()
					h.interfere(hang(began.Add(time.Hour), affected, done))
					o := must(dispatch.NewOrchestrator(registry(), h.Provider, &dispatch.OrchestratorOptions{
						BuildID: "test", CacheBytes: -1, MaxCrashes: 3,
					}))
					w := must(dispatch.NewWorker(registry(), h.Provider, &dispatch.WorkerOptions{MaxCrashes: 3}))
					most := 0
					for time.Since(began) < 4*time.Hour {
						inbox, work := h.receive("sim://inbox.fifo"), h.receive("sim://default")
						for _, r := range slices.Concat(inbox, work) {
							most = max(most, r.ReceiveCount)
						}
						if len(inbox) > 0 {
							go h.invoke(ctx, provider.QueueInbox, 30*time.Second, o.HandleRecords, inbox)
						}
						if len(work) > 0 {
							go h.invoke(ctx, "default", time.Minute, w.HandleRecords, work)
						}
						time.Sleep(5 * time.Second)
					}
					end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
					if err != nil || string(end.Output) != "3" {
						t.Errorf("after %d deliveries of a message: ended with %s, output %s, error %v",
							most, end.String(), end.Output, err)
					}
					h.wantNoDeadLetters("sim://default-dead")
					h.wantNoDeadLetters("sim://inbox-dead.fifo")
				})
			})
		}
	}
}

// hang blocks the calls of functions until a time. If done is true, the calls are executed. No response arrives in
// either case. After its deadline, a function makes no more calls.
func hang(until time.Time, affected func(simaws.Call) bool, done bool) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		end, ok := ctx.Value(function{}).(time.Time)
		switch now := time.Now(); {
		case !ok:
			return next()
		case !now.Before(end):
			return errors.New("the process was killed")
		case !now.Before(until) || !affected(c):
			return next()
		}
		if done {
			_ = next()
		}
		killed := time.NewTimer(time.Until(end))
		defer killed.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-killed.C:
			return errors.New("the process was killed")
		}
	}
}
