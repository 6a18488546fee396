package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

type parcel struct {
	Instance string
	Weight   int
}

// pack returns the ID of its instance.
func pack(ctx *perdure.OrchestrationContext, n int) (parcel, error) {
	n, err := perdure.CallActivity(ctx, inc, n).Await(ctx)
	return parcel{ctx.InstanceID(), n}, err
}

// decline fails in the given way.
func decline(ctx *perdure.OrchestrationContext, how string) (int, error) {
	switch how {
	case "cause":
		return 0, perdure.NonRetryable(fmt.Errorf("order 1: %w", &declinedError{coded{"E42"}}))
	case "timeout":
		return 0, &perdure.TimeoutError{Message: "after 1s"}
	case "cancelled":
		return 0, &perdure.CancelledError{Reason: perdure.ReasonRequested, Message: "no"}
	case "activity":
		_, err := perdure.CallActivityByName[int](ctx, "late", 1).Await(ctx)
		return 0, err
	case "child":
		return perdure.CallSubOrchestration(ctx, decline, "activity").Await(ctx)
	default:
		panic(how)
	}
}

// third succeeds at the third attempt.
func third(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	if id := ctx.InstanceID(); !strings.HasSuffix(id, "~3") {
		return "", errors.New(id)
	}
	return ctx.InstanceID(), nil
}

// parent starts fn as "o", with the activities and orchestrations of this file registered.
func parent[Out any](tb testing.TB, fn func(*perdure.OrchestrationContext, int) (Out, error)) *world {
	tb.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddActivity(r, "late", func(context.Context, int) (int, error) {
		return 0, &perdure.TimeoutError{Message: "late"}
	})
	perdure.AddOrchestration(r, "pack", pack)
	perdure.AddOrchestration(r, "decline", decline)
	perdure.AddOrchestration(r, "third", third)
	perdure.AddOrchestration(r, "version", nothing)
	perdure.AddOrchestration(r, "o", fn)
	return newWorld(tb, r).start("o", 1)
}

func kinds(events []history.Event) string {
	var names []string
	for i := range events {
		names = append(names, string(events[i].Kind))
	}
	return strings.Join(names, " ")
}

func TestCallSubOrchestration_byFunctionOrName_runsChild(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*perdure.OrchestrationContext) *perdure.Future[parcel]{
		"function": func(ctx *perdure.OrchestrationContext) *perdure.Future[parcel] {
			return perdure.CallSubOrchestration(ctx, pack, 7)
		},
		"name": func(ctx *perdure.OrchestrationContext) *perdure.Future[parcel] {
			return perdure.CallSubOrchestrationByName[parcel](ctx, "pack", 7)
		},
	} {
		w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (parcel, error) { return call(ctx).Await(ctx) })
		if got := w.run().replayed().output(); got != `{"Instance":"order-17:01JEXECUTION:3","Weight":8}` {
			t.Errorf("by %s: %s", name, got)
		}
		want := history.Event{
			ID: 3, Kind: history.SubOrchestrationScheduled, Time: epoch, Name: "pack",
			InstanceID: "order-17:01JEXECUTION:3",
			StartID:    "01JEXECUTION:3", Input: history.Payload("7"), Attempt: 1,
		}
		if !reflect.DeepEqual(w.history[2], want) {
			t.Errorf("by %s: %+v", name, w.history[2])
		}
	}
}

func TestCallSubOrchestration_fanOut_runsInParallel(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "nap", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return n, perdure.Sleep(ctx, time.Duration(100-n)*time.Second) // the last one completes first
	})
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) ([]int, error) {
		var fs []*perdure.Future[int]
		for i := range 10 {
			fs = append(fs, perdure.CallSubOrchestrationByName[int](ctx, "nap", i))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return nil, err
		}
		var got []int
		for _, f := range fs {
			n, err := f.Await(ctx)
			if err != nil {
				return nil, err
			}
			got = append(got, n)
		}
		return got, nil
	})
	w := newWorld(t, r).start("o", 1).run()
	if got := w.replayed().output(); got != "[0,1,2,3,4,5,6,7,8,9]" {
		t.Error(got)
	}
	ids := map[string]bool{}
	for _, ev := range w.history {
		if ev.Kind == history.SubOrchestrationScheduled {
			ids[ev.InstanceID] = true
		}
	}
	if len(ids) != 10 || !w.now.Equal(epoch.Add(100*time.Second)) {
		t.Errorf("%d instances, until %v", len(ids), w.now)
	}
}

func TestSubOrchestrationError_childFails_hasTypeMessageAndCause(t *testing.T) {
	t.Parallel()
	const id = "order-17:01JEXECUTION:3"
	cause := &history.Failure{Type: "E42", Message: "coded E42"}
	late := &history.Failure{Type: history.TypeTimeout, Message: "late"}
	timedOut := func(err error) bool {
		return errors.As(err, new(*perdure.TimeoutError)) && errors.Is(err, context.DeadlineExceeded)
	}
	for how, tt := range map[string]struct {
		want  perdure.SubOrchestrationError
		text  string
		finds func(error) bool
	}{
		"cause": {
			perdure.SubOrchestrationError{
				Type: "declinedError", Message: "order 1: declined", NonRetryable: true, Cause: cause,
			},
			"declinedError: order 1: declined", func(err error) bool { return errors.Unwrap(err) == nil },
		},
		"timeout": {perdure.SubOrchestrationError{Type: "timeout", Message: "after 1s"}, "timeout: after 1s", timedOut},
		"cancelled": {
			perdure.SubOrchestrationError{Type: "cancelled", Message: "no", CancelReason: "requested"},
			"cancelled: no",
			func(err error) bool {
				ce, ok := errors.AsType[*perdure.CancelledError](err)
				return ok && *ce == perdure.CancelledError{Reason: perdure.ReasonRequested, Message: "no"}
			},
		},
		"activity": {
			perdure.SubOrchestrationError{
				Type: "ActivityError", Message: `activity "late" (#3): timeout: late`, Cause: late,
			},
			`ActivityError: activity "late" (#3): timeout: late`, timedOut,
		},
	} {
		var seen error
		w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			n, err := perdure.CallSubOrchestration(ctx, decline, how).Await(ctx)
			seen = err
			return n, err
		})
		end := w.run().replayed().failure()
		tt.want.Orchestration, tt.want.InstanceID = "decline", id
		se, ok := errors.AsType[*perdure.SubOrchestrationError](seen)
		if !ok || !reflect.DeepEqual(*se, tt.want) || !tt.finds(seen) {
			t.Errorf("%s: %#v", how, seen)
		}
		if text := fmt.Sprintf("orchestration %q (instance %q): %s", "decline", id,
			tt.text); end.Type != "SubOrchestrationError" || end.Message != text || end.Cause.Type != tt.want.Type {
			t.Errorf("%s: %+v, want %q", how, end, text)
		}
	}
}

// The timeout is in an activity of a grandchild.
func TestSubOrchestrationError_timeoutInGrandchild_isFoundByErrorsAs(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestration(ctx, decline, "child").Await(ctx)
		te, ok := errors.AsType[*perdure.TimeoutError](err)
		if !ok {
			return "", err
		}
		return te.Message, nil
	})
	if got := w.run().replayed().output(); got != `"late"` {
		t.Error(got)
	}
}

func TestSubOrchestrationError_childPanics_hasTypePanic(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestration(ctx, decline, "boom").Await(ctx)
		se, ok := errors.AsType[*perdure.SubOrchestrationError](err)
		if !ok {
			return "", err
		}
		return se.Type, nil
	})
	if got := w.run().replayed().output(); got != `"panic"` {
		t.Error(got)
	}
}

func TestCallSubOrchestration_resultDoesNotDecode_returnsError(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.CallSubOrchestrationByName[string](ctx, "pack", 1).Await(ctx)
	})
	if f := w.run().replayed().failure(); f.Type != history.TypeDecode ||
		!strings.Contains(f.Message, `decode result of orchestration "pack"`) {
		t.Errorf("%+v", f)
	}
}

func TestCallSubOrchestration_retry_startsNewInstance(t *testing.T) {
	t.Parallel()
	policy := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Minute})
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.CallSubOrchestration(ctx, third, 7, policy, perdure.WithInstanceID("t"),
			perdure.WithVersion("0")).Await(ctx)
	})
	if got := w.run().replayed().output(); got != `"t~3"` {
		t.Error(got)
	}
	const attempt = "TurnStarted SubOrchestrationFailed TimerCreated TurnStarted TimerFired SubOrchestrationScheduled "
	if got := kinds(w.history[3:]); got != attempt+attempt+
		"TurnStarted SubOrchestrationCompleted OrchestrationCompleted" {
		t.Error(got)
	}
	if !w.now.Equal(epoch.Add(3 * time.Minute)) {
		t.Errorf("over at %v", w.now)
	}
	for i, at := range []int{2, 8, 14} {
		ev := w.history[at]
		if ev.Attempt != i+1 || ev.Name != "third" || ev.Version != "0" || string(ev.Input) != "7" || ev.Retry == nil {
			t.Errorf("attempt %d: %+v", i+1, ev)
		}
	}
}

func TestCallSubOrchestration_turnRunsAgain_retryHasSameJitter(t *testing.T) {
	t.Parallel()
	policy := perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts: 3, InitialInterval: time.Minute, BackoffCoefficient: 1,
	})
	var waits [2][2]time.Duration
	for again := range waits { // a turn with a lost commit runs again
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "third", third)
		perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			return perdure.CallSubOrchestration(ctx, third, 7, policy, perdure.WithInstanceID("t")).Await(ctx)
		})
		w := newWorld(t, r)
		w.options.ExactRetries = false
		if got := w.start("o", 1).run().replayed().output(); got != `"t~3"` {
			t.Error(got)
		}
		for i, timer := range []int{5, 11} {
			waits[again][i] = w.history[timer].FireAt.Sub(w.history[timer].Time)
		}
	}
	first, second := waits[0][0], waits[0][1]
	if least := 48 * time.Second; first < least || first >= time.Minute || second < least || second >= time.Minute ||
		first == second {
		t.Errorf("waits of %v and %v", first, second)
	}
	if waits[0] != waits[1] {
		t.Errorf("the same turn waits %v, then %v", waits[0], waits[1])
	}
}

func TestCallSubOrchestration_noFurtherAttempt_returnsLastError(t *testing.T) {
	t.Parallel()
	retry := func(p perdure.RetryPolicy) []perdure.SubOrchestrationCallOption {
		return []perdure.SubOrchestrationCallOption{perdure.WithRetry(p)}
	}
	for name, tt := range map[string]struct {
		opts []perdure.SubOrchestrationCallOption
		last string
	}{
		"without policy": {nil, "t"},
		"all attempts":   {retry(perdure.RetryPolicy{MaxAttempts: 2}), "t~2"},
		"not retried":    {retry(perdure.RetryPolicy{NonRetryableErrorTypes: []string{"error"}}), "t"},
	} {
		w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			_, err := perdure.CallSubOrchestration(ctx, third, 1,
				append(tt.opts, perdure.WithInstanceID("t"))...).Await(ctx)
			se, ok := errors.AsType[*perdure.SubOrchestrationError](err)
			if !ok {
				return "", err
			}
			return se.InstanceID + " " + se.Message, nil
		})
		if got := w.run().replayed().output(); got != fmt.Sprintf("%q", tt.last+" "+tt.last) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestCallSubOrchestration_retryTimerCannotBeSet_returnsError(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "elsewhere", 1, perdure.WithRetry(perdure.RetryPolicy{}),
			perdure.WithInstanceID("t")).Await(ctx)
		return "", err
	})
	w.turn(history.Event{
		Kind: history.SubOrchestrationFailed, SourceEventID: 3, InstanceID: "t", Error: failedWith("E"),
	})
	w.turn(history.Event{
		Kind: history.OutputFailed, SourceEventID: 6, Error: &history.Failure{Type: "error", Message: "quota"},
	})
	if f := w.replayed().failure(); f.Message != `orchestration "elsewhere" (instance "t"): quota` {
		t.Errorf("%+v", f)
	}
}

func TestFutureCancel_subOrchestration_settlesAtOnce(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		f := perdure.CallSubOrchestrationByName[int](ctx, "elsewhere", 1, perdure.WithRetry(perdure.RetryPolicy{}),
			perdure.WithInstanceID("t"))
		f.Cancel("no need")
		_, err := f.Await(ctx)
		return fmt.Sprint(err), perdure.Sleep(ctx, time.Second)
	})
	w.turn(history.Event{
		Kind: history.SubOrchestrationFailed, SourceEventID: 3, InstanceID: "t", Error: failedWith("E"),
	})
	if got := w.run().replayed().output(); got != `"cancelled (requested): no need"` {
		t.Error(got)
	}
	if ev := w.history[3]; ev.Kind != history.SubOrchestrationCancelRequested || ev.InstanceID != "t" ||
		ev.Reason != "requested" {
		t.Errorf("%+v", ev)
	}
}

func TestWithVersion_subOrchestration_runsThatVersion(t *testing.T) {
	t.Parallel()
	as := func(v string) func(*perdure.OrchestrationContext, int) (string, error) {
		return func(*perdure.OrchestrationContext, int) (string, error) { return v, nil }
	}
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "child", as("one"), perdure.WithVersion("1"))
	perdure.AddOrchestration(r, "child", as("two"), perdure.WithVersion("2"))
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		highest, err := perdure.CallSubOrchestrationByName[string](ctx, "child", 1).Await(ctx)
		first, again := perdure.CallSubOrchestrationByName[string](ctx, "child", 1, perdure.WithVersion("1")).Await(ctx)
		id, detached := perdure.StartOrchestration(ctx, "child", 1, perdure.WithVersion("1"))
		return highest + " " + first + " " + id, errors.Join(err, again, detached)
	})
	w := newWorld(t, r).start("o", 1).run()
	if got := w.replayed().output(); got != `"two one order-17:01JEXECUTION:9"` {
		t.Error(got)
	}
	if got := string(w.detached["order-17:01JEXECUTION:9"].Result); got != `"one"` {
		t.Errorf("detached: %s", got)
	}
}

// One option value applies to activities, sub-orchestrations and registrations.
func TestWithRetry_activityAndSubOrchestration_appliesToBoth(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2})
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		a, b := perdure.CallActivity(ctx, inc, 1, retry), perdure.CallSubOrchestration(ctx, nothing, 1, retry)
		return 0, perdure.WhenAll(ctx, a, b)
	})
	if w.run().replayed().output(); w.history[2].Retry.MaxAttempts != 2 || w.history[3].Retry.MaxAttempts != 2 {
		t.Errorf("%+v", w.history[2:4])
	}
	perdure.AddOrchestration(w.registry, "p", nothing, []perdure.OrchestrationOption{perdure.WithVersion("1")}...)
}

func TestWithInstanceID_otherIDOnReplay_isNondeterminism(t *testing.T) {
	t.Parallel()
	calls := func(id string) *world {
		return parent(t, func(ctx *perdure.OrchestrationContext, _ int) (parcel, error) {
			return perdure.CallSubOrchestration(ctx, pack, 1, perdure.WithInstanceID(id)).Await(ctx)
		})
	}
	err := calls("other").open().Replay(calls("one").history)
	var e *perdure.NondeterminismError
	if !errors.As(err, &e) || e.EventID != 3 ||
		!strings.Contains(err.Error(),
			`"pack" as instance "one", the code requested SubOrchestrationScheduled "pack" as instance "other"`) {
		t.Error(err)
	}
}
