package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// step is a statement of an orchestration.
type step func(ctx *perdure.OrchestrationContext) error

// code returns a registry with an orchestration of these steps.
func code(steps []step, opts ...perdure.OrchestrationOption) *perdure.Registry {
	return build(func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "Code", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			for _, s := range steps {
				if err := s(ctx); err != nil {
					return "", err
				}
			}
			return "done", nil
		}, opts...)
	})
}

func call(name string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		perdure.CallActivityByName[any](ctx, name, nil)
		return nil
	}
}

// inc awaits an activity, and starts other activities before that.
func inc(others ...string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		f := perdure.CallActivityByName[any](ctx, "Inc", 0)
		for _, name := range others {
			perdure.CallActivityByName[any](ctx, name, "")
		}
		_, err := f.Await(ctx)
		return err
	}
}

func timer(ctx *perdure.OrchestrationContext) error {
	perdure.CreateTimer(ctx, time.Second)
	return nil
}

// event awaits an external event, and starts activities before that.
func event(name string, meanwhile ...string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		f := perdure.WaitForExternalEvent[int](ctx, name)
		for _, name := range meanwhile {
			perdure.CallActivityByName[any](ctx, name, nil)
		}
		_, err := f.Await(ctx)
		return err
	}
}

func child(name, id string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		perdure.CallSubOrchestrationByName[any](ctx, name, 1, perdure.WithInstanceID(id))
		return nil
	}
}

func cancelledChild(ctx *perdure.OrchestrationContext) error {
	perdure.CallSubOrchestrationByName[any](ctx, "Counts", 1, perdure.WithInstanceID("c")).Cancel("")
	return nil
}

func detach(name, id string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.StartOrchestration(ctx, name, 1, perdure.WithInstanceID(id))
		return err
	}
}

func effect[T any](v T) step {
	return func(ctx *perdure.OrchestrationContext) error {
		perdure.SideEffect(ctx, func() T { return v })
		return nil
	}
}

func setStatus(ctx *perdure.OrchestrationContext) error {
	ctx.SetCustomStatus("on its way")
	return nil
}

// race starts an activity that completes before a timer and another activity. It then calls a function with the losers.
func race(then func(ctx *perdure.OrchestrationContext, winner, timer, slow perdure.Awaitable) error) step {
	return func(ctx *perdure.OrchestrationContext) error {
		winner, timer := perdure.CallActivityByName[int](ctx, "Inc", 1), perdure.CreateTimer(ctx, time.Minute)
		slow := perdure.CallActivityByName[string](ctx, "Nap", time.Minute)
		if _, err := perdure.WhenAny(ctx, winner, timer, slow); err != nil {
			return err
		}
		return then(ctx, winner, timer, slow)
	}
}

func selects(ctx *perdure.OrchestrationContext, winner, timer, slow perdure.Awaitable) error {
	_, err := perdure.Select(ctx, winner, timer, slow)
	return err
}

func spawn(names ...string) step {
	return func(ctx *perdure.OrchestrationContext) error {
		for _, name := range names {
			perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) { perdure.CallActivityByName[any](ctx, name, nil) })
		}
		return perdure.Sleep(ctx, time.Millisecond)
	}
}

func continues(ctx *perdure.OrchestrationContext) error {
	_, err := perdure.ContinueAsNew[string](ctx, 1)
	return err
}

func fails(*perdure.OrchestrationContext) error { return errors.New("no more") }

func panics(*perdure.OrchestrationContext) error { panic("no more") }

// change is the code of an instance before and after a deployment. The deployment happens before the event "go".
type change struct {
	name          string
	before, after []step
	expected, got string
}

func changes() []change {
	wait := event("go")
	const waits = `ExternalEventSubscribed "go"`
	return []change{
		{
			"activity name",
			[]step{call("Inc"), wait},
			[]step{call("Echo"), wait},
			`ActivityScheduled "Inc"`,
			`ActivityScheduled "Echo"`,
		},
		{
			"activity became timer",
			[]step{call("Inc"), wait},
			[]step{timer, wait},
			`ActivityScheduled "Inc"`,
			"TimerCreated",
		},
		{
			"timer became activity",
			[]step{timer, wait},
			[]step{call("Inc"), wait},
			"TimerCreated",
			`ActivityScheduled "Inc"`,
		},
		{
			"activity became child",
			[]step{call("Inc"), wait},
			[]step{child("Counts", "c"), wait},
			`ActivityScheduled "Inc"`, `SubOrchestrationScheduled "Counts" as instance "c"`,
		},
		{
			"activity became event",
			[]step{call("Inc"), wait},
			[]step{event("x"), wait},
			`ActivityScheduled "Inc"`,
			`ExternalEventSubscribed "x"`,
		},
		{
			"order swapped",
			[]step{call("Inc"), timer, wait},
			[]step{timer, call("Inc"), wait},
			`ActivityScheduled "Inc"`, "TimerCreated",
		},
		{
			"coroutines swapped",
			[]step{spawn("Inc", "Echo"), wait},
			[]step{spawn("Echo", "Inc"), wait},
			`ActivityScheduled "Inc"`, `ActivityScheduled "Echo"`,
		},
		{"additional activity", []step{call("Inc"), wait}, []step{call("Inc"), timer, wait}, waits, "TimerCreated"},
		{
			"additional activity at the end of a turn",
			[]step{inc(), wait},
			[]step{inc("Echo"), wait},
			"no further decision before TurnStarted", `ActivityScheduled "Echo"`,
		},
		{
			"additional activity at the end of history",
			[]step{wait},
			[]step{event("go", "Inc")},
			"no further event",
			`ActivityScheduled "Inc"`,
		},
		{"missing activity", []step{call("Inc"), timer, wait}, []step{call("Inc"), wait}, "TimerCreated", waits},
		{
			"missing activity at the end of a turn",
			[]step{inc("Echo"), wait},
			[]step{inc(), wait},
			`ActivityScheduled "Echo"`,
			`nothing and waits for ActivityScheduled "Inc" #3`,
		},
		{"event name", []step{wait}, []step{event("gone")}, waits, `ExternalEventSubscribed "gone"`},
		{
			"child name",
			[]step{child("Counts", "c"), wait},
			[]step{child("Hello-detached", "c"), wait},
			`SubOrchestrationScheduled "Counts" as instance "c"`,
			`SubOrchestrationScheduled "Hello-detached" as instance "c"`,
		},
		{
			"child id",
			[]step{child("Counts", "c"), wait},
			[]step{child("Counts", "d"), wait},
			`SubOrchestrationScheduled "Counts" as instance "c"`, `SubOrchestrationScheduled "Counts" as instance "d"`,
		},
		{
			"child became detached",
			[]step{child("Counts", "c"), wait},
			[]step{detach("Counts", "c"), wait},
			`SubOrchestrationScheduled "Counts" as instance "c"`,
			`DetachedOrchestrationScheduled "Counts" as instance "c"`,
		},
		{
			"detached name",
			[]step{detach("Counts", "c"), wait},
			[]step{detach("Reserves", "c"), wait},
			`DetachedOrchestrationScheduled "Counts" as instance "c"`,
			`DetachedOrchestrationScheduled "Reserves" as instance "c"`,
		},
		{
			"child not cancelled",
			[]step{cancelledChild, wait},
			[]step{child("Counts", "c"), wait},
			`SubOrchestrationCancelRequested as instance "c" of #3 (requested)`, waits,
		},
		{"end instead of a wait", []step{wait}, nil, waits, "OrchestrationCompleted"},
		{"continue instead of a wait", []step{wait}, []step{continues}, waits, "OrchestrationContinuedAsNew"},
		{"failure instead of a wait", []step{wait}, []step{fails}, waits, "OrchestrationFailed"},
		{"panic instead of a wait", []step{wait}, []step{panics}, waits, "OrchestrationFailed"},
		{"side effect removed", []step{effect(7), wait}, []step{wait}, "SideEffectRecorded", waits},
		{"side effect added", []step{wait}, []step{effect(7), wait}, waits, "SideEffectRecorded"},
		{
			"side effect of another type",
			[]step{effect(7), wait},
			[]step{effect("seven"), wait},
			"SideEffectRecorded",
			"SideEffectRecorded of another type: *",
		},
		{"custom status removed", []step{setStatus, wait}, []step{wait}, "CustomStatusSet", waits},
		{"custom status added", []step{wait}, []step{setStatus, wait}, waits, "CustomStatusSet"},
		{
			"losers kept",
			[]step{race(selects), wait},
			[]step{race(func(
				*perdure.OrchestrationContext, perdure.Awaitable, perdure.Awaitable, perdure.Awaitable,
			) error {
				return nil
			}), wait},
			"TimerCancelled of #4 (select_loser)", waits,
		},
		{
			"another loser",
			[]step{race(selects), wait},
			[]step{race(func(_ *perdure.OrchestrationContext, _, _, slow perdure.Awaitable) error {
				slow.Cancel("")
				return nil
			}), wait},
			"TimerCancelled of #4 (select_loser)", "ActivityCancelRequested of #5 (requested)",
		},
		{
			"another reason",
			[]step{race(selects), wait},
			[]step{race(func(_ *perdure.OrchestrationContext, _, timer, _ perdure.Awaitable) error {
				timer.Cancel("")
				return nil
			}), wait},
			"TimerCancelled of #4 (select_loser)", "TimerCancelled of #4 (requested)",
		},
	}
}

// Deployed code can differ from the history of a running instance in each of these ways. The instance is listed as
// blocked, with the event in the history and the command of the code. It continues when the old code is deployed again,
// and receives the event that arrived in the meantime.
func TestNondeterminism_codeChanged_blocksInstanceUntilCodeIsBack(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, code(c.before), func(ctx context.Context, h *hub) {
				h.start("i", "Code", 0)
				h.serve(10 * time.Minute)
				h.deploy(code(c.after), "changed")
				h.raiseGo("i", 1)
				h.ServeFor(ctx, time.Second)
				if s := h.status("i"); s.Status != client.StatusRunning {
					t.Errorf("after the first failure, before another build receives the message: got status %s",
						s.Status)
				}
				h.serve(30 * time.Minute)
				bothSides(t, h.blocked("i"), c.expected, c.got)
				h.deploy(code(c.before), "as before")
				h.serve(2 * time.Hour)
				h.completed("i", `"done"`)
			})
		})
	}
}

// bothSides fails the test unless the failure has both sides in its fields and in its message. A star at the end
// matches any text.
func bothSides(t *testing.T, d *history.Failure, expected, got string) {
	t.Helper()
	head, open := strings.CutSuffix(got, "*")
	if d.Type != history.TypeNondeterminism || d.Expected != expected ||
		d.Got != got && (!open || !strings.HasPrefix(d.Got, head)) {
		t.Errorf("%s: got %q in history, %q in the code\nwant %q and %q", d.Type, d.Expected, d.Got, expected, got)
	}
	if message := fmt.Sprintf("history has %s, the code requested %s", d.Expected, d.Got); !strings.Contains(d.Message,
		message) || d.EventID < 2 {
		t.Errorf("got event #%d, message %q, want %q in it", d.EventID, d.Message, message)
	}
}

// Arguments of commands are not compared. If only arguments change, running work continues with its old arguments.
func TestNondeterminism_onlyArgumentsChanged_isNotReported(t *testing.T) {
	t.Parallel()
	arguments := func(n int, d time.Duration, p perdure.RetryPolicy) []step {
		return []step{func(ctx *perdure.OrchestrationContext) error {
			ctx.SetCustomStatus(n)
			perdure.SideEffect(ctx, func() int { return n })
			perdure.CallActivityByName[int](ctx, "Inc", n, perdure.WithStartToCloseTimeout(d), perdure.WithRetry(p))
			perdure.CreateTimer(ctx, d)
			perdure.CallSubOrchestrationByName[int](ctx, "Counts", n, perdure.WithInstanceID("c"), perdure.WithRetry(p))
			return nil
		}, event("go")}
	}
	inBubble(t, code(arguments(1, time.Minute, perdure.RetryPolicy{})), func(_ context.Context, h *hub) {
		h.start("i", "Code", 0)
		h.serve(10 * time.Minute)
		h.deploy(code(arguments(2, time.Hour, perdure.RetryPolicy{MaxAttempts: 7})), "changed")
		h.raiseGo("i", 1)
		h.serve(10 * time.Minute)
		h.completed("i", `"done"`)
	})
}

func TestFailOnNondeterminism_codeChanged_failsInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, code([]step{event("go")}), func(_ context.Context, h *hub) {
		h.start("i", "Code", 0)
		h.serve(5 * time.Minute)
		h.deploy(code([]step{event("gone")}, perdure.FailOnNondeterminism()), "strict")
		h.raiseGo("i", 1)
		h.serve(10 * time.Minute)
		if s := h.status("i"); s.Status != client.StatusFailed || s.Failure == nil ||
			s.Failure.Type != history.TypeNondeterminism || s.Failure.Got != `ExternalEventSubscribed "gone"` {
			t.Errorf("got %s, %+v", s.Status, s.Failure)
		}
	})
}
