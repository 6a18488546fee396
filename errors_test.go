package perdure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
)

type declinedError struct{ Cause error }

func (e *declinedError) Error() string { return "declined" }
func (e *declinedError) Unwrap() error { return e.Cause }

type coded struct{ code string }

func (e coded) Error() string     { return "coded " + e.code }
func (e coded) ErrorType() string { return e.code }

type generic[T any] struct{ v T }

func (e generic[T]) Error() string { return "generic" }

type timeout struct{}

func (timeout) Error() string { return "mine" }

type final struct{ yes bool }

func (e final) Error() string      { return "final" }
func (e final) NonRetryable() bool { return e.yes }

// failing returns the failure of an activity that returns err.
func failing(t *testing.T, err error) history.Failure {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { return 1, err })
	a, _ := codeOf(r).Activity("a")
	out, f := a.Run(t.Context(), json.RawMessage("1"))
	if f == nil || out != nil {
		t.Fatalf("got %s, %+v", out, f)
	}
	return *f
}

func TestFailure_errorOfActivity_hasTypeMessageAndCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want history.Failure
	}{
		"errors.New":      {errors.New("x"), history.Failure{Type: "error", Message: "x"}},
		"sentinel":        {fmt.Errorf("read: %w", io.EOF), history.Failure{Type: "error", Message: "read: EOF"}},
		"pointer type":    {&declinedError{}, history.Failure{Type: "declinedError", Message: "declined"}},
		"value type":      {generic[int]{1}, history.Failure{Type: "generic", Message: "generic"}},
		"ErrorType":       {coded{"E42"}, history.Failure{Type: "E42", Message: "coded E42"}},
		"empty ErrorType": {coded{""}, history.Failure{Type: "coded", Message: "coded "}},
		"reserved name":   {timeout{}, history.Failure{Type: "perdure_test.timeout", Message: "mine"}},
		"wrapped": {
			fmt.Errorf("order 1: %w", &declinedError{}),
			history.Failure{Type: "declinedError", Message: "order 1: declined"},
		},
		"joined": {
			errors.Join(errors.New("x"), coded{"E1"}, coded{"E2"}),
			history.Failure{Type: "E1", Message: "x\ncoded E1\ncoded E2", Joined: []string{"E2"}},
		},
		"standard library": {
			&fs.PathError{Op: "open", Path: "p", Err: io.EOF},
			history.Failure{
				Type: "PathError", Message: "open p: EOF", Cause: &history.Failure{Type: "error", Message: "EOF"},
			},
		},
		"cause": {
			&declinedError{coded{"E42"}},
			history.Failure{
				Type: "declinedError", Message: "declined", Cause: &history.Failure{Type: "E42", Message: "coded E42"},
			},
		},
		"non-retryable": {
			perdure.NonRetryable(&declinedError{}),
			history.Failure{Type: "declinedError", Message: "declined", NonRetryable: true},
		},
		"with a nil pointer": {
			perdure.NonRetryable(fmt.Errorf("%w (cancel: %w)", &declinedError{}, (*perdure.CancelledError)(nil))),
			history.Failure{Type: "declinedError", Message: "declined (cancel: <nil>)", NonRetryable: true},
		},
		"marked cause": {
			fmt.Errorf("x: %w", perdure.NonRetryable(io.EOF)),
			history.Failure{Type: "error", Message: "x: EOF", NonRetryable: true},
		},
		"marks itself":           {final{true}, history.Failure{Type: "final", Message: "final", NonRetryable: true}},
		"marks itself retryable": {final{false}, history.Failure{Type: "final", Message: "final"}},
		"cancelled": {
			&perdure.CancelledError{Reason: perdure.ReasonTimeout, Message: "m"},
			history.Failure{Type: "cancelled", Message: "m", Reason: "timeout"},
		},
		"wrapped cancelled": {
			fmt.Errorf("x: %w", &perdure.CancelledError{Reason: perdure.ReasonRequested}),
			history.Failure{Type: "cancelled", Message: "x: cancelled (requested)", Reason: "requested"},
		},
		"cancel and another error": {
			fmt.Errorf("x: %w", errors.Join(&perdure.CancelledError{Reason: perdure.ReasonRequested}, coded{"E1"})),
			history.Failure{Type: "E1", Message: "x: cancelled (requested)\ncoded E1"},
		},
		"cancel and an error without a type": {
			errors.Join(&perdure.CancelledError{Reason: perdure.ReasonRequested}, errors.New("x")),
			history.Failure{Type: "error", Message: "cancelled (requested)\nx"},
		},
		"cancel and a wrapped cancel": {
			errors.Join(&perdure.CancelledError{Reason: perdure.ReasonRequested},
				&declinedError{&perdure.CancelledError{Reason: perdure.ReasonTimeout}}),
			history.Failure{
				Type: "declinedError", Message: "cancelled (requested)\ndeclined",
				Cause: &history.Failure{Type: "cancelled", Reason: "timeout"},
			},
		},
		"only cancels": {
			errors.Join(&perdure.CancelledError{Reason: perdure.ReasonRequested},
				&perdure.CancelledError{Reason: perdure.ReasonTimeout}),
			history.Failure{
				Type: "cancelled", Message: "cancelled (requested)\ncancelled (timeout)", Reason: "requested",
			},
		},
		"timed out": {&perdure.TimeoutError{Message: "1s"}, history.Failure{Type: "timeout", Message: "1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := failing(t, tt.err); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestFailure_longCauseChain_isTruncated(t *testing.T) {
	t.Parallel()
	var err error = coded{"bottom"}
	for range 100 {
		err = &declinedError{err}
	}
	depth := 0
	f := failing(t, err)
	for c := &f; c != nil; c = c.Cause {
		depth++
	}
	if depth != 9 {
		t.Errorf("got %d failures in a chain, want 9", depth)
	}
}

// Each orchestration that a failure passes through adds a cause to the chain.
func TestFailure_longCauseChainPassedOn_isTruncated(t *testing.T) {
	t.Parallel()
	f := &history.Failure{Type: "bottom"}
	for range 100 {
		f = &history.Failure{Type: "E", Cause: f}
	}
	depth := 0
	end, _ := awaiting(t, f)
	for c := &end; c != nil; c = c.Cause {
		depth++
	}
	if depth != 9 {
		t.Errorf("got %d failures in a chain, want 9", depth)
	}
}

func TestFailure_longMessage_isTruncated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 1<<20)
	var boom any = long
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { panic(boom) })
	a, _ := codeOf(r).Activity("a")
	_, panicked := a.Run(t.Context(), nil)
	w := orchestrate(t, func(*perdure.OrchestrationContext, int) (int, error) { panic(boom) })
	for name, f := range map[string]history.Failure{
		"error": failing(t, errors.New(long)), "cancelled": failing(t, &perdure.CancelledError{Message: long}),
		"timeout": failing(t, &perdure.TimeoutError{Message: long}), "activity's panic": *panicked,
		"panic": w.replayed().failure(),
	} {
		if len(f.Message) > 40<<10 || len(f.Message) < 8<<10 || !utf8.ValidString(f.Message) {
			t.Errorf("%s: got %d bytes, valid UTF-8: %v", name, len(f.Message), utf8.ValidString(f.Message))
		}
		if strings.Contains(name, "panic") && !strings.Contains(f.Message, "TestFailure_longMessage_isTruncated") {
			t.Errorf("%s: got a failure without the stack", name)
		}
	}
}

// One non-retryable error among joined errors prevents a retry, at any position: by its mark or by its type.
func TestNonRetryable_anyJoinedError_preventsRetry(t *testing.T) {
	t.Parallel()
	policy := &history.RetryPolicy{NonRetryable: []string{"E9"}}
	passing, fatal := &declinedError{}, coded{"E9"}
	called := &perdure.ActivityError{Type: "inner", Cause: &history.Failure{Type: "E9"}}
	for name, errs := range map[string][]error{
		"marked":                 {passing, final{false}, perdure.NonRetryable(io.EOF)},
		"marks itself":           {passing, final{false}, final{true}},
		"by name":                {passing, final{false}, fatal},
		"by the name of a cause": {passing, &declinedError{errors.Join(passing, fatal)}},

		"an activity's, marked": {
			&perdure.ActivityError{Type: "a"}, &perdure.ActivityError{Type: "b", NonRetryable: true},
		},
		"a sub-orchestration's": {
			&perdure.SubOrchestrationError{Type: "a"}, &perdure.SubOrchestrationError{Type: "b", NonRetryable: true},
		},
		"an activity's, by a name":          {&perdure.ActivityError{Type: "a"}, &perdure.ActivityError{Type: "E9"}},
		"an activity's, by its cause":       {&perdure.ActivityError{Type: "a"}, called},
		"with a value that is not an error": {nil, passing, fatal},
		"of a format with two of them":      {fmt.Errorf("%w and %w", passing, fatal)},
	} {
		for range errs {
			errs = append(errs[1:], errs[0])
			f := failing(t, fmt.Errorf("x: %w", errors.Join(errs...)))
			if delay, again := retry.Next(policy, "x", 3, 1, &f); again {
				t.Errorf("%s: %v is tried again in %v: %+v", name, errs, delay, f)
			}
		}
	}
	f := failing(t, errors.Join(passing, final{false}))
	if _, again := retry.Next(policy, "x", 3, 1, &f); !again {
		t.Errorf("%+v is not tried again", f)
	}
}

// The types of joined errors are part of the failure of an activity, and of the failure of an orchestration that
// returns it.
func TestFailure_typesOfJoinedErrors_arePassedOn(t *testing.T) {
	t.Parallel()
	end, err := awaiting(t, &history.Failure{Type: "E1", Message: "m", Joined: []string{"E9"}})
	policy := &history.RetryPolicy{NonRetryable: []string{"E9"}}
	if _, again := retry.Next(policy, "x", 3, 1, &end); again {
		t.Errorf("got %+v, error %v", end, err)
	}
	var many []error
	for i := range 100 {
		many = append(many, coded{fmt.Sprint(i)})
	}
	if f := failing(t, errors.Join(many...)); len(f.Joined) != history.MaxJoined {
		t.Errorf("got %d names", len(f.Joined))
	}
}

func TestNonRetryable_nil_returnsNil(t *testing.T) {
	t.Parallel()
	if err := perdure.NonRetryable(nil); err != nil {
		t.Error(err)
	}
	if err := perdure.NonRetryable(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Error(err)
	}
}

// awaiting returns the error of an activity with the given failure, and the failure of the orchestration that returns
// this error.
func awaiting(t *testing.T, f *history.Failure) (end history.Failure, seen error) {
	t.Helper()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		n, err := perdure.CallActivity(ctx, inc, 1).Await(ctx)
		seen = err
		return n, err
	})
	w.turn(history.Event{Kind: history.ActivityFailed, SourceEventID: 3, Error: f, Attempt: 1})
	return w.failure(), seen
}

func TestActivityError_failedActivity_hasTypeMessageAndCause(t *testing.T) {
	t.Parallel()
	cause := &history.Failure{Type: "E42", Message: "coded"}
	end, err := awaiting(t, &history.Failure{Type: "DeclinedError", Message: "no", NonRetryable: true, Cause: cause})
	var ae *perdure.ActivityError
	if !errors.As(err, &ae) {
		t.Fatal(err)
	}
	want := perdure.ActivityError{
		Activity: "inc", ActivityID: 3, Type: "DeclinedError", Message: "no", NonRetryable: true, Cause: cause,
	}
	if *ae != want || err.Error() != `activity "inc" (#3): DeclinedError: no` || errors.Unwrap(err) != nil {
		t.Errorf("%+v: got error %v", ae, err)
	}
	wantEnd := history.Failure{
		Type: "ActivityError", Message: err.Error(), NonRetryable: true,
		Cause: &history.Failure{Type: "DeclinedError", Message: "no", NonRetryable: true, Cause: cause},
	}
	if !reflect.DeepEqual(end, wantEnd) {
		t.Errorf("got %+v, want %+v", end, wantEnd)
	}
}

func TestActivityError_failureOfEngine_isFoundByErrorsAs(t *testing.T) {
	t.Parallel()
	_, err := awaiting(t, &history.Failure{Type: history.TypeTimeout, Message: "after 1s"})
	var te *perdure.TimeoutError
	if !errors.As(err, &te) || te.Message != "after 1s" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("timeout: got error %v", err)
	}
	_, err = awaiting(t, &history.Failure{Type: history.TypeCancelled, Reason: "lock_lost", Message: "m"})
	var ce *perdure.CancelledError
	if !errors.As(err, &ce) || *ce != (perdure.CancelledError{Reason: perdure.ReasonLockLost, Message: "m"}) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v", err)
	}
	_, err = awaiting(t, &history.Failure{
		Type: "Outer",
		Cause: &history.Failure{
			Type: history.TypePayloadTooLarge, Message: "payload too large: 300 bytes, limit 200: input of x: y",
		},
	})
	var pe *perdure.PayloadTooLargeError
	if !errors.As(err, &pe) || *pe != (perdure.PayloadTooLargeError{Name: "input of x: y", Bytes: 300, Limit: 200}) {
		t.Errorf("too large: got error %v", err)
	}
	_, err = awaiting(t, &history.Failure{Type: history.TypePayloadTooLarge, Message: "another text"})
	if !errors.As(err, &pe) || pe.Name != "another text" {
		t.Errorf("too large, message of another release: got error %v", err)
	}
}

func TestCancelledError_reason_matchesContextError(t *testing.T) {
	t.Parallel()
	for reason, want := range map[perdure.CancelReason]error{
		perdure.ReasonTimeout: context.DeadlineExceeded, perdure.ReasonSelectLoser: context.Canceled,
		perdure.ReasonShutdown: context.Canceled,
	} {
		err := fmt.Errorf("x: %w", &perdure.CancelledError{Reason: reason})
		if errors.Is(err, context.Canceled) == errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, want) {
			t.Errorf("got error %v, want %v", err, want)
		}
	}
}

func TestCancelReason_eachReason_hasStableString(t *testing.T) {
	t.Parallel()
	for reason, want := range map[perdure.CancelReason]string{
		perdure.ReasonRequested:                   "requested",
		perdure.ReasonSelectLoser:                 "select_loser",
		perdure.ReasonScopeEnded:                  "dropped_future",
		perdure.ReasonTimeout:                     "timeout",
		perdure.ReasonOrchestrationCompleted:      "orchestration_terminal_completed",
		perdure.ReasonOrchestrationFailed:         "orchestration_terminal_failed",
		perdure.ReasonOrchestrationCancelled:      "orchestration_terminal_cancelled",
		perdure.ReasonOrchestrationTerminated:     "orchestration_terminal_terminated",
		perdure.ReasonOrchestrationContinuedAsNew: "orchestration_terminal_continued_as_new",
		perdure.ReasonParentCancelled:             "parent_cancelled",
		perdure.ReasonInstanceDeleted:             "instance_deleted",
		perdure.ReasonLockLost:                    "lock_lost",
		perdure.ReasonInvocationDeadline:          "deadline",
		perdure.ReasonShutdown:                    "shutdown",
	} {
		if string(reason) != want {
			t.Errorf("got %q, want %q", reason, want)
		}
	}
	for kind, want := range map[history.Kind]string{
		history.OrchestrationCompleted:      "orchestration_terminal_completed",
		history.OrchestrationFailed:         "orchestration_terminal_failed",
		history.OrchestrationCancelled:      "orchestration_terminal_cancelled",
		history.OrchestrationTerminated:     "orchestration_terminal_terminated",
		history.OrchestrationContinuedAsNew: "orchestration_terminal_continued_as_new",
	} {
		if got := history.TerminalReason(kind); got != want {
			t.Errorf("cancel reason after %s: got %q, want %q", kind, got, want)
		}
	}
	if history.ReasonInstanceDeleted != "instance_deleted" {
		t.Errorf("cancel reason after a deletion: got %q", history.ReasonInstanceDeleted)
	}
	reasonsWritten(t)
}

// reasonsWritten compares the reasons in the history of real turns with their strings.
func reasonsWritten(t *testing.T) {
	t.Helper()
	slow := func(ctx *perdure.OrchestrationContext) *perdure.Future[int] {
		return perdure.CallActivityByName[int](ctx, "slow", 1)
	}
	child := func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestrationByName[int](ctx, "missing", 1) }
	outstanding := func(ctx *perdure.OrchestrationContext, end error) (int, error) {
		slow(ctx)
		_, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
		slow(perdure.WithoutCancel(ctx))
		return 0, errors.Join(err, end)
	}
	event := history.Event{Kind: history.ExternalEventRaised, Name: "e", EventID: "1", Data: history.Payload("1")}
	for name, tt := range map[string]struct {
		body  func(ctx *perdure.OrchestrationContext, n int) (int, error)
		input history.Event
		want  string
	}{
		"the loser of a select": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.Select(ctx, slow(ctx), perdure.WaitForExternalEvent[int](ctx, "e"))
		}, input: event, want: "select_loser"},
		"a scope that is left": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			scope, leave := perdure.WithCancel(ctx)
			slow(scope)
			child(scope)
			leave()
			return 0, nil
		}, want: "dropped_future"},
		"a scope that runs out of time": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			scope, leave := perdure.WithTimeout(ctx, time.Minute)
			defer leave()
			child(scope)
			_, err := slow(scope).Await(scope)
			return 0, errors.Join(err, perdure.Sleep(ctx, 0))
		}, input: history.Event{Kind: history.TimerFired, SourceEventID: 3}, want: "timeout"},
		"a future that is cancelled": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			slow(ctx).Cancel("")
			return 0, nil
		}, want: "requested"},
		"an instance that is cancelled, with a child": {body: func(ctx *perdure.OrchestrationContext, _ int) (
			int, error,
		) {
			child(ctx)
			_, err := slow(ctx).Await(ctx)
			return 0, err
		}, input: history.Event{Kind: history.CancelRequested}, want: "requested parent_cancelled requested"},
		"a client's cancel of an activity": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			_, err := slow(ctx).Await(ctx)
			return 0, err
		}, input: history.Event{
			Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested",
			RequestedBy: history.RequestedByClient,
		}, want: "requested"},
		"completion": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return outstanding(ctx, nil)
		}, input: event, want: "orchestration_terminal_completed"},
		"failure": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return outstanding(ctx, errors.New("x"))
		}, input: event, want: "orchestration_terminal_failed"},
		"cancellation": {
			body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				return outstanding(ctx, nil)
			}, input: history.Event{Kind: history.CancelRequested},
			want: "requested orchestration_terminal_cancelled requested",
		},
		"termination": {body: func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return outstanding(ctx, nil)
		}, input: history.Event{Kind: history.OrchestrationTerminated}, want: "orchestration_terminal_terminated"},
	} {
		w := orchestrate(t, tt.body)
		if tt.input.Kind != "" {
			w.turn(tt.input)
		}
		var reasons []string
		for _, e := range w.history {
			if e.Reason != "" && (len(reasons) == 0 || reasons[len(reasons)-1] != e.Reason) {
				reasons = append(reasons, e.Reason)
			}
		}
		if got := strings.Join(reasons, " "); got != tt.want {
			t.Errorf("%s: got reasons %q, want %q", name, got, tt.want)
		}
	}
}

func TestOrchestration_errorPanicOrGoexit_fails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body     func() error
		want     string
		wantText string
	}{
		"error":  {func() error { return &declinedError{} }, "declinedError", "declined"},
		"panic":  {func() error { panic("boom") }, history.TypePanic, "TestOrchestration_errorPanicOrGoexit_fails"},
		"goexit": {func() error { runtime.Goexit(); return nil }, history.TypeGoexit, "runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(*perdure.OrchestrationContext, int) (int, error) { return 0, tt.body() })
			if f := w.replayed().failure(); f.Type != tt.want || !strings.Contains(f.Message, tt.wantText) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestSleep_timerCannotBeSet_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) { return 0, perdure.Sleep(ctx, 1) })
	w.turn(history.Event{
		Kind: history.OutputFailed, SourceEventID: 3, Error: &history.Failure{Type: "error", Message: "quota"},
	})
	if f := w.failure(); f.Message != "timer #3: quota" {
		t.Errorf("got %+v", f)
	}
}
