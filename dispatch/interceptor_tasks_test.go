package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// taskLog records the tasks of an instance that an interceptor receives, one line per task.
type taskLog struct {
	of    string
	mu    sync.Mutex
	lines []string
}

func (l *taskLog) interceptor() perdure.Interceptor {
	return perdure.Interceptor{OnTasks: func(_ context.Context, t perdure.TurnTasks) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.InstanceID != l.of {
			return
		}
		for _, x := range t.Scheduled {
			l.lines = append(l.lines, strings.TrimSpace(fmt.Sprintf("%d: begins #%d %s %s %s", t.Sequence, x.ID, x.Kind,
				x.Name, x.InstanceID)))
		}
		for _, x := range t.Ended {
			line := fmt.Sprintf("%d: ends #%d %s %s of %d %s", t.Sequence, x.ID, x.Kind, x.Name, x.ScheduledInTurn,
				x.Outcome)
			if x.Attempt > 1 {
				line += fmt.Sprintf(" after %d attempts", x.Attempt)
			}
			if x.Failure != nil {
				line += ": " + x.Failure.Message
			}
			l.lines = append(l.lines, strings.TrimSpace(line+" "+x.Reason))
		}
	}}
}

var numbers = regexp.MustCompile(`^\d+: | #\d+| of \d+`)

// withoutNumbers removes the numbers that depend on the order of concurrent outcomes.
func withoutNumbers(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, numbers.ReplaceAllString(line, ""))
	}
	return all
}

// manyTasks adds an orchestration with a task of each kind and each end.
func manyTasks(r *perdure.Registry) {
	perdure.AddActivity(r, "refuses", func(context.Context, int) (int, error) { return 0, errors.New("no") })
	perdure.AddOrchestration(r, "child", func(_ *perdure.OrchestrationContext, n int) (int, error) {
		if n == 0 {
			return 0, errors.New("nothing to do")
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "many-tasks", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		perdure.SetUpdateHandler(ctx, "set", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			return n, nil
		})
		if _, err := perdure.CallActivity(ctx, inc, 1, perdure.Inline()).Await(ctx); err != nil {
			return "", err
		}
		flaky := perdure.CallActivityByName[int](ctx, "flaky", 2,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second}))
		refused := perdure.CallActivityByName[int](ctx, "refuses", 1)
		done, failed := perdure.CallSubOrchestrationByName[int](ctx, "child", 1, perdure.WithInstanceID("c-1")),
			perdure.CallSubOrchestrationByName[int](ctx, "child", 0, perdure.WithInstanceID("c-0"))
		raised, called := perdure.RaiseEvent(ctx, "missing", "word", 1), perdure.CallUpdate[int](ctx, "i-1", "set", 7)
		_ = perdure.WhenAll(ctx, flaky, refused, done, failed, raised, called)
		if _, err := perdure.StartOrchestration(ctx, "child", 1, perdure.WithInstanceID("d-1")); err != nil {
			return "", err
		}
		never := perdure.WaitForExternalEvent[int](ctx, "never")
		_, _ = perdure.Select(ctx, never, perdure.CreateTimer(ctx, time.Minute, perdure.WithTimerName("patience")))
		add := perdure.WaitForExternalEvent[int](ctx, "add")
		_, _ = perdure.Select(ctx, add, perdure.CreateTimer(ctx, time.Hour, perdure.WithTimerName("limit")))
		perdure.WaitForExternalEvent[int](ctx, "left")
		return "over", nil
	})
}

// The interceptor receives the same tasks of each kind and end with cached and uncached instances.
func TestOnTasks_receivesEveryKindOfTaskAndEnd(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		log := &taskLog{of: "i-1"}
		r := registry()
		manyTasks(r)
		inBubble(t, simhub.Options{
			Registry: r, CacheBytes: cache, Interceptors: []perdure.Interceptor{log.interceptor()},
			Tasks: &simhub.TaskMonitor{All: true},
		}, func(_ context.Context, h *hub) {
			in := h.start("many-tasks", 0)
			h.serveFor(10 * time.Minute)
			h.raise(in, "e-1", 7)
			if end := h.finish(in); string(end.Output) != `"over"` {
				t.Fatalf("%s: got %+v", name, end)
			}
			h.checkIdle()
		})
		got := slices.Sorted(slices.Values(withoutNumbers(log.lines)))
		if diff := cmp.Diff([]string{
			"begins activity flaky", "begins activity inc", "begins activity refuses",
			"begins detached_orchestration child d-1", "begins external_event add", "begins external_event left",
			"begins external_event never", "begins sent_event word missing", "begins sent_update set i-1",
			"begins sub_orchestration child c-0", "begins sub_orchestration child c-1",
			"begins timer limit", "begins timer patience", "begins update set",
			"ends activity flaky completed after 2 attempts", "ends activity inc completed",
			"ends activity refuses failed: no", "ends external_event add completed",
			"ends external_event left cancelled orchestration_terminal_completed",
			"ends external_event never cancelled select_loser",
			`ends sent_event word failed: instance "missing" not found`, "ends sent_update set completed",
			"ends sub_orchestration child completed",
			"ends sub_orchestration child failed: nothing to do", "ends timer limit cancelled select_loser",
			"ends timer patience completed", "ends update set completed",
		}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Any call fails, and is repeated with its message. The scheduled and ended tasks of a committed turn are reported
// once, even if not all outputs could be sent.
func TestOnTasks_anyCallFails_reportsEachTaskOnce(t *testing.T) {
	t.Parallel()
	for failing, made := int64(1), true; made; failing++ {
		r := registry()
		manyTasks(r)
		inBubble(t, simhub.Options{
			Registry: r, Tasks: &simhub.TaskMonitor{All: true},
		}, func(_ context.Context, h *hub) {
			in := h.start("many-tasks", 0)
			var calls atomic.Int64
			fails := failsOnce(&calls, failing)
			h.interfere(fails)
			h.serveFor(10 * time.Minute)
			h.interfere(nil)
			h.raise(in, "e-1", 7)
			h.interfere(fails)
			h.serveFor(24 * time.Hour)
			h.interfere(nil)
			h.checkIdle()
			made = calls.Load() >= failing
		})
	}
}

// failsOnce fails one call, by its number, before it is made.
func failsOnce(calls *atomic.Int64, failing int64) simaws.Interceptor {
	return func(_ context.Context, _ simaws.Call, next func() error) error {
		if calls.Add(1) == failing {
			return errAccess
		}
		return next()
	}
}

// An inline activity ends, and the code continues before the commit and consumes an earlier event. One commit contains
// both turns, and their tasks are reported once.
func TestOnTasks_turnRanAhead_reportsTasksOfBothTurns(t *testing.T) {
	t.Parallel()
	log := &taskLog{of: "i-1"}
	r := registry()
	perdure.AddOrchestration(r, "takes-later", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.CallActivity(ctx, inc, 1, perdure.Inline()).Await(ctx); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	inBubble(t, simhub.Options{
		Registry: r, Interceptors: []perdure.Interceptor{log.interceptor()}, Tasks: &simhub.TaskMonitor{All: true},
	}, func(_ context.Context, h *hub) {
		in := h.start("takes-later", 0)
		h.raise(in, "e-1", 7)
		if end := h.finish(in); string(end.Output) != "7" {
			t.Fatalf("got %+v, want 7", end)
		}
		h.checkIdle()
	})
	want := []string{
		"1: begins #3 activity inc", "1: begins #7 external_event add", "1: ends #3 activity inc of 1 completed",
		"1: ends #7 external_event add of 1 completed",
	}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

// A paused instance is terminated without a turn of its code. Its open tasks are reported as ended, except waits for
// external events, because history does not show whether the code still waits.
func TestOnTasks_pausedInstanceTerminated_reportsEnds(t *testing.T) {
	t.Parallel()
	log := &taskLog{of: "i-1"}
	r := registry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return 0, perdure.WhenAll(ctx, perdure.CreateTimer(ctx, time.Hour, perdure.WithTimerName("patience")),
			perdure.WaitForExternalEvent[int](ctx, "add"))
	})
	inBubble(t, simhub.Options{
		Registry: r, Interceptors: []perdure.Interceptor{log.interceptor()}, Tasks: &simhub.TaskMonitor{All: true},
	}, func(_ context.Context, h *hub) {
		in := h.start("waits", 0)
		h.serveFor(time.Second)
		h.pause(in, "p1")
		h.serveFor(time.Second)
		h.send(provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID, Text: "enough",
		})
		h.finish(in)
		h.checkIdle()
	})
	want := []string{
		"1: begins #3 timer patience", "1: begins #4 external_event add",
		"3: ends #3 timer patience of 1 cancelled orchestration_terminal_terminated",
	}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

// A panic of one interceptor is logged, and the next one still receives the tasks. Changes that an interceptor makes to
// its argument do not reach history.
func TestOnTasks_interceptorPanicsOrWrites_changesNothing(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := &taskLog{of: "i-1"}
	damages := perdure.Interceptor{OnTasks: func(_ context.Context, t perdure.TurnTasks) {
		for i := range t.Ended {
			if f := t.Ended[i].Failure; f != nil {
				f.Message, f.Type = "***", "spoiled"
			}
		}
		panic("mine")
	}}
	r := registry()
	perdure.AddActivity(r, "refuses", func(context.Context, int) (int, error) { return 0, errors.New("no") })
	perdure.AddOrchestration(r, "caller", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		refused := perdure.CallActivityByName[int](ctx, "refuses", 1)
		if err := perdure.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
		_, err := refused.Await(ctx) // its failure was reported a minute ago
		return err.Error(), nil
	})
	inBubble(t, simhub.Options{
		Registry: r, Interceptors: []perdure.Interceptor{damages, log.interceptor()},
		Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	}, func(_ context.Context, h *hub) {
		in := h.start("caller", 0)
		if end := h.finish(in); !strings.Contains(string(end.Output), "no") ||
			strings.Contains(string(end.Output), "***") {
			t.Errorf("got %+v, want the original failure", end)
		}
		for _, e := range h.events(in) {
			if e.Error != nil && e.Error.Message != "no" {
				t.Errorf("got %+v in history, want the original failure", e.Error)
			}
		}
		h.checkIdle()
	})
	if n := strings.Count(logged.String(), logevent.InterceptorPanicked); n != 3 || len(log.lines) != 4 {
		t.Errorf("got %d logged panics, tasks %q", n, log.lines)
	}
}

// Interleaving: a turn is committed, and the process crashes before or during its interceptor. SQS redelivers the
// message, outputs are sent again, and tasks are not reported again. An interceptor that always kills its process does
// not stop the instance or make it poison, because each turn makes progress.
func TestOnTasks_processDies_tasksAreNotReportedAgain(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &taskLog{of: "i-1"}
			var h *hub
			var dies atomic.Bool
			crasher := perdure.Interceptor{OnTasks: func(ctx context.Context, turn perdure.TurnTasks) {
				log.interceptor().OnTasks(ctx, turn)
				dies.Store(true)
				_, _ = h.Provider.ReadInstance(ctx, turn.InstanceID)
			}}
			monitor := &simhub.TaskMonitor{}
			inBubble(t, simhub.Options{
				Registry: sleeper(3, "add"), CacheBytes: cache, Interceptors: []perdure.Interceptor{crasher},
				Tasks: monitor, Environments: 2,
				Intercept: simhub.Crash(func(simaws.Call) (bool, bool) { return dies.Swap(false), false }),
			}, func(_ context.Context, hub *hub) {
				h = hub
				in := h.start("sleeper", 0)
				for n := range 3 {
					h.serveFor(time.Hour)
					h.raise(in, fmt.Sprint(n), n)
				}
				if end := h.finish(in); end.Kind != history.OrchestrationCompleted || string(end.Output) != "3" {
					t.Errorf("got %+v, want 3", end)
				}
				h.checkIdle()
			})
			if begins := strings.Count(strings.Join(log.lines, "\n"), "begins"); begins != 3 ||
				len(slices.Compact(slices.Sorted(slices.Values(log.lines)))) != len(log.lines) {
				t.Errorf("got tasks %q", log.lines)
			}
		})
	}
}

// A task has the trace context of the turn that scheduled it, and is reported in the trace context of the turn that
// ends it.
func TestOnTasks_task_hasTraceContextOfItsTurn(t *testing.T) {
	t.Parallel()
	trace := func(sequence int64) string { return fmt.Sprintf("00-%032x-%016x-01", sequence, sequence) }
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		raised := 0
		traces := perdure.Interceptor{
			Turn: func(ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
				next(perdure.WithTraceParent(ctx, trace(turn.Sequence)))
			},
			OnTasks: func(ctx context.Context, turn perdure.TurnTasks) {
				for _, x := range slices.Concat(turn.Scheduled, turn.Ended) {
					if raised++; x.TraceParent != trace(x.ScheduledInTurn) ||
						perdure.TraceParentFrom(ctx) != trace(turn.Sequence) {
						t.Errorf("%s: turn %d in trace context %s has task %+v",
							name, turn.Sequence, perdure.TraceParentFrom(ctx), x)
					}
				}
			},
		}
		r := registry()
		manyTasks(r)
		inBubble(t, simhub.Options{
			Registry: r, CacheBytes: cache, Interceptors: []perdure.Interceptor{traces},
		}, func(_ context.Context, h *hub) {
			in := h.start("many-tasks", 0)
			h.serveFor(10 * time.Minute)
			h.raise(in, "e-1", 7)
			h.finish(in)
		})
		if raised < 27 {
			t.Errorf("%s: got %d tasks, want at least 27", name, raised)
		}
	}
}
