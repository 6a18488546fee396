package perdure_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

type cards struct{ n int }

func (c *cards) Charge(context.Context, int) (int, error) { return c.n, nil }
func (c *cards) Refund(context.Context, int) (int, error) { return c.n, nil }

type ledger struct{ n int }

func (l ledger) Check(context.Context, int) (int, error) { return l.n, nil }

type charger interface {
	Refund(ctx context.Context, n int) (int, error)
}

type store[T any] struct{ v T }

func (s *store[T]) Get(context.Context, int) (T, error) { return s.v, nil }

func convert[T any](_ context.Context, v T) (T, error) { return v, nil }

func twice(_ context.Context, n int) (int, error) { return 2 * n, nil }

var variable = func(_ context.Context, n int) (int, error) { return n, nil }

func func1(_ context.Context, n int) (int, error) { return n, nil }

// closure is not inlined, because each inlined call would have its own function literal.
//
//go:noinline
func closure(k int) func(context.Context, int) (int, error) {
	return func(ctx context.Context, _ int) (int, error) { return inc(ctx, k) }
}

func functions() *perdure.Registry {
	eu, us := &cards{1}, &cards{2}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc, perdure.OnQueue("math"))
	perdure.AddActivity(r, "refund", eu.Refund)
	perdure.AddActivity(r, "check", (&ledger{1}).Check)
	perdure.AddActivity(r, "charge-eu", eu.Charge)
	perdure.AddActivity(r, "charge-us", us.Charge)
	perdure.AddActivity(r, "get-int", (&store[int]{}).Get)
	perdure.AddActivity(r, "get-string", (&store[string]{}).Get)
	perdure.AddActivity(r, "convert-int", convert[int])
	perdure.AddActivity(r, "convert-string", convert[string])
	perdure.AddActivity(r, "twice", twice)
	perdure.AddActivity(r, "double", twice)
	perdure.AddActivity(r, "variable", variable)
	perdure.AddActivity(r, "closure", closure(1))
	perdure.AddActivity(r, "func1", func1)
	orchestrations(r)
	return r
}

// calling runs the first turn of an orchestration that only makes that call.
func calling(t *testing.T, call func(*perdure.OrchestrationContext)) (history.Event, error) {
	t.Helper()
	r := functions()
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		call(ctx)
		return 0, nil
	})
	w := newWorld(t, r)
	w.code, _ = codeOf(r).Orchestration("o", "")
	w.instance = w.open()
	w.history = []history.Event{{ID: 1, Kind: history.OrchestrationStarted, Time: epoch, Input: history.Payload("1")}}
	if err := w.instance.Replay(w.history); err != nil {
		t.Fatal(err)
	}
	if err := w.tryTurn(); err != nil {
		return history.Event{}, err
	}
	return w.history[2], nil
}

func TestCallActivity_registeredFunction_findsName(t *testing.T) {
	t.Parallel()
	var none *cards
	for want, call := range map[string]func(*perdure.OrchestrationContext){
		"inc":    func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, inc, 1) },
		"refund": func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, none.Refund, 1) },
		"check":  func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, ledger{}.Check, 1) },
		"get-int": func(ctx *perdure.OrchestrationContext) {
			perdure.CallActivity(ctx, (*store[int])(nil).Get, 1)
		},
		"get-string": func(ctx *perdure.OrchestrationContext) {
			perdure.CallActivity(ctx, (*store[string])(nil).Get, 1)
		},
		"convert-int":    func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, convert[int], 1) },
		"convert-string": func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, convert[string], "") },
		"func1":          func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, func1, 1) },
		"variable":       func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, variable, 1) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ev, err := calling(t, call)
			if err != nil || ev.Kind != history.ActivityScheduled || ev.Name != want {
				t.Errorf("got %s, error %v", ev.String(), err)
			}
		})
	}
}

func TestCallActivity_functionWithoutUniqueName_fails(t *testing.T) {
	t.Parallel()
	var iface charger = &cards{}
	for name, tt := range map[string]struct {
		call func(*perdure.OrchestrationContext)
		want []string
	}{
		"not registered": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, convert[bool], true) },
			[]string{"perdure_test.convert[...]", "no activity is registered with it"},
		},
		"two receivers": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, (&cards{}).Charge, 1) },
			[]string{"(*cards).Charge", `"charge-eu" and "charge-us"`},
		},
		"two names": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, twice, 1) },
			[]string{"perdure_test.twice", `"double" and "twice"`},
		},
		"through an interface": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, iface.Refund, 1) },
			[]string{"charger.Refund", "taken from an interface"},
		},
		"literal in place": {
			func(ctx *perdure.OrchestrationContext) {
				perdure.CallActivity(ctx, func(context.Context, int) (int, error) { return 0, nil }, 1)
			},
			[]string{"it is a closure, which has no identity"},
		},
		"closure": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, closure(2), 1) },
			[]string{"closure", "it is a closure, which has no identity"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := calling(t, tt.call)
			if _, ok := errors.AsType[*replay.UnregisteredError](err); !ok {
				t.Fatal(err)
			}
			for _, part := range append(tt.want, "order-17", "by name or by reference") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

// Go dereferences the nil pointer to form the method value, before CallActivity is called.
func TestCallActivity_valueMethodOfNilPointer_failsOrchestration(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		var none *ledger
		return perdure.CallActivity(ctx, none.Check, 1).Await(ctx)
	})
	if f := w.failure(); f.Type != history.TypePanic || !strings.Contains(f.Message, "nil pointer dereference") {
		t.Errorf("got %+v", f)
	}
}

func TestCallActivity_queueOfRegistrationOrReference_isRecorded(t *testing.T) {
	t.Parallel()
	reference := perdure.DefineActivity[int, int]("elsewhere", perdure.OnQueue("gpu"))
	for want, call := range map[string]func(*perdure.OrchestrationContext){
		"math by value": func(ctx *perdure.OrchestrationContext) { perdure.CallActivity(ctx, inc, 1) },
		"math by name": func(ctx *perdure.OrchestrationContext) {
			perdure.CallActivityByName[int](ctx, "inc", 1)
		},
		perdure.DefaultQueue: func(ctx *perdure.OrchestrationContext) {
			perdure.CallActivityByName[int](ctx, "unknown", 1)
		},
		"gpu": func(ctx *perdure.OrchestrationContext) { reference.Call(ctx, 1) },
	} {
		if ev, err := calling(t, call); err != nil || ev.Queue != strings.Fields(want)[0] {
			t.Errorf("got %s on queue %q, want %q; error %v", ev.String(), ev.Queue, want, err)
		}
	}
}

type shop struct{ n int }

func (s *shop) Close(*perdure.OrchestrationContext, int) (int, error) { return s.n, nil }
func (s *shop) Open(*perdure.OrchestrationContext, int) (int, error)  { return s.n, nil }

type closer interface {
	Close(ctx *perdure.OrchestrationContext, n int) (int, error)
}

func echo[T any](_ *perdure.OrchestrationContext, v T) (T, error) { return v, nil }

func again(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil }

// body is not inlined, for the same reason as closure.
//
//go:noinline
func body(k int) func(*perdure.OrchestrationContext, int) (int, error) {
	return func(*perdure.OrchestrationContext, int) (int, error) { return k, nil }
}

func orchestrations(r *perdure.Registry) {
	eu, us := &shop{1}, &shop{2}
	perdure.AddOrchestration(r, "nothing", nothing, perdure.WithVersion("1"))
	perdure.AddOrchestration(r, "nothing", nothing, perdure.WithVersion("2"))
	perdure.AddOrchestration(r, "close", eu.Close)
	perdure.AddOrchestration(r, "open-eu", eu.Open)
	perdure.AddOrchestration(r, "open-us", us.Open)
	perdure.AddOrchestration(r, "echo-int", echo[int])
	perdure.AddOrchestration(r, "echo-string", echo[string])
	perdure.AddOrchestration(r, "again", again)
	perdure.AddOrchestration(r, "once-more", again)
	perdure.AddOrchestration(r, "body", body(1))
}

func TestCallSubOrchestration_registeredFunction_findsName(t *testing.T) {
	t.Parallel()
	var none *shop
	for want, call := range map[string]func(*perdure.OrchestrationContext){
		"nothing":     func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, nothing, 1) },
		"close":       func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, none.Close, 1) },
		"echo-int":    func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, echo[int], 1) },
		"echo-string": func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, echo[string], "") },
	} {
		if ev, err := calling(t, call); err != nil || ev.Kind != history.SubOrchestrationScheduled || ev.Name != want ||
			ev.Version != "" {
			t.Errorf("%s: got %s, error %v", want, ev.String(), err)
		}
	}
}

func TestCallSubOrchestration_functionWithoutUniqueName_fails(t *testing.T) {
	t.Parallel()
	var iface closer = &shop{}
	for name, tt := range map[string]struct {
		call func(*perdure.OrchestrationContext)
		want []string
	}{
		"not registered": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, echo[bool], true) },
			[]string{"perdure_test.echo[...]", "no orchestration is registered with it"},
		},
		"two receivers": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, (&shop{}).Open, 1) },
			[]string{"(*shop).Open", `"open-eu" and "open-us"`},
		},
		"two names": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, again, 1) },
			[]string{"perdure_test.again", `"again" and "once-more"`},
		},
		"through an interface": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, iface.Close, 1) },
			[]string{"closer.Close", "taken from an interface"},
		},
		"closure": {
			func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestration(ctx, body(1), 1) },
			[]string{"perdure_test.body.func1", "it is a closure, which has no identity"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := calling(t, tt.call)
			if _, ok := errors.AsType[*replay.UnregisteredError](err); !ok {
				t.Fatal(err)
			}
			for _, part := range append(tt.want, "order-17", "which orchestration function", "; call it by name") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "reference") {
				t.Errorf("error %q recommends references, which orchestrations do not have", err)
			}
		})
	}
}
