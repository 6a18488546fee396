package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

type detail struct{ N int }

type wrapping struct{ error }

func (w *wrapping) Unwrap() error { return w.error }

// failsWith runs an orchestration whose activity returns err, and returns the text that describe returns for the error
// of the call.
func failsWith(t *testing.T, err error, describe func(error) string, opts ...perdure.ActivityCallOption) string {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { return 0, err })
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "a", 1, opts...).Await(ctx)
		return describe(err), nil
	})
	return newWorld(t, r).start("o", 1).run().replayed().output()
}

func detailsText(err error) string {
	d, why := perdure.ErrorDetails[detail](err)
	if why != nil {
		return why.Error()
	}
	return fmt.Sprint(d.N)
}

func TestErrorDetails_errorOfActivity_returnsOutermostDetails(t *testing.T) {
	t.Parallel()
	with := func(n int, err error) error { return perdure.WithErrorDetails(err, detail{n}) }
	plain := errors.New("plain")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":                           {plain, perdure.ErrNoDetails.Error()},
		"an error without a type":        {with(1, plain), "1"},
		"an error with one":              {with(2, &wrapping{plain}), "2"},
		"wrapped":                        {fmt.Errorf("w: %w", with(3, &wrapping{plain})), "3"},
		"wrapped without a type":         {fmt.Errorf("w: %w", with(3, plain)), "3"},
		"marked":                         {perdure.NonRetryable(with(4, plain)), "4"},
		"of a cause":                     {&wrapping{with(5, plain)}, "5"},
		"of a cause's cause":             {&wrapping{&wrapping{with(5, plain)}}, "5"},
		"the outer ones first":           {with(6, &wrapping{with(7, plain)}), "6"},
		"the outer ones of one error":    {with(8, with(9, plain)), "8"},
		"joined":                         {errors.Join(plain, with(10, plain)), "10"},
		"joined, of the one with a type": {errors.Join(with(11, plain), with(12, &wrapping{plain})), "12"},
		"joined, of more than a cancel":  {errors.Join(with(13, &perdure.CancelledError{}), with(14, plain)), "14"},
		"nil details":                    {perdure.WithErrorDetails(plain, nil), perdure.ErrNoDetails.Error()},
		"looks like a location": {
			perdure.WithErrorDetails(plain, map[string]any{"ref": "data:x;eA==", "sha256": "x", "bytes": 1, "N": 1}),
			"1",
		},
		"not encodable": {
			perdure.WithErrorDetails(plain, func() {}),
			"perdure: error details are not available: encode: json: unsupported type: func()",
		},
		"too large": {
			perdure.WithErrorDetails(plain, strings.Repeat("x", 4095)),
			"perdure: error details are not available: 4097 bytes of JSON exceed the limit of 4096",
		},
		"just not too large": {
			perdure.WithErrorDetails(plain, map[string]string{"x": strings.Repeat("x", 4096-len(`{"x":""}`))}), "0",
		},
		"does not fit": {
			perdure.WithErrorDetails(plain, "text"),
			"perdure: error details are not available: decode into perdure_test.detail: json: cannot unmarshal " +
				"string into Go value of type perdure_test.detail",
		},
		"too large hides those of a cause": {
			perdure.WithErrorDetails(&wrapping{with(15, plain)}, strings.Repeat("x", 5000)),
			"perdure: error details are not available: 5002 bytes of JSON exceed the limit of 4096",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := fmt.Sprintf("%q", c.want)
			if got := failsWith(t, c.err, detailsText); got != want {
				t.Errorf("details for the caller: got %s, want %s", got, want)
			}
		})
	}
	if perdure.WithErrorDetails(nil, detail{1}) != nil || detailsText(nil) != perdure.ErrNoDetails.Error() {
		t.Error("nil error: got details")
	}
}

// Details change neither the text nor the type of an error, nor its retries, nor the errors that it wraps.
func TestWithErrorDetails_wrappedError_keepsTextTypeAndRetries(t *testing.T) {
	t.Parallel()
	inner := &wrapping{errors.New("plain")}
	err := perdure.WithErrorDetails(inner, detail{1})
	if err.Error() != "plain" || !errors.Is(err, inner) || detailsText(err) != "1" {
		t.Errorf("got error %v, details %s", err, detailsText(err))
	}
	attempts := 0
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) {
		attempts++
		if attempts == 3 {
			return 0, perdure.WithErrorDetails(perdure.NonRetryable(inner), detail{attempts})
		}
		return 0, perdure.WithErrorDetails(inner, detail{attempts})
	})
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallActivityByName[int](ctx, "a", 1,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 9, InitialInterval: time.Second})).Await(ctx)
		failed, _ := errors.AsType[*perdure.ActivityError](err)
		same, _ := errors.AsType[*perdure.ActivityError](fmt.Errorf("w: %w", err))
		return fmt.Sprintf("%s %s %v %s %t", failed.Type, failed.Message, failed.NonRetryable, detailsText(err),
			failed == same), nil
	})
	if got := newWorld(t, r).start("o", 1).run().replayed().output(); got != `"wrapping plain true 3 true"` ||
		attempts != 3 {
		t.Errorf("got %s after %d attempts", got, attempts)
	}
}

// A failure that passes through children keeps the details of its cause. Details that a parent adds take precedence.
func TestErrorDetails_failureInNestedChild_reachesTopLevelParent(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) {
		return 0, perdure.WithErrorDetails(errors.New("plain"), detail{1})
	})
	perdure.AddOrchestration(r, "level", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 0 {
			_, err := perdure.CallActivityByName[int](ctx, "a", 1).Await(ctx)
			return "", err
		}
		_, err := perdure.CallSubOrchestrationByName[string](ctx, "level", n-1).Await(ctx)
		return "", err
	})
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[string](ctx, "level", 3).Await(ctx)
		return "", fmt.Errorf("o: %w", perdure.WithErrorDetails(err, map[string]string{"seen": detailsText(err)}))
	})
	f := newWorld(t, r).start("o", 1).run().replayed().failure()
	if string(f.Details) != `{"seen":"1"}` {
		t.Errorf("details of the failure: got %s", f.Details)
	}
	deepest := &f
	for deepest.Cause != nil {
		deepest = deepest.Cause
	}
	if string(deepest.Details) != `{"N":1}` || deepest.Message != "plain" {
		t.Errorf("deepest cause: got %+v", deepest)
	}
}

// A failure whose details do not fit is still valid JSON and records the omission.
func TestFailureTruncate_detailsDoNotFit_recordsOmission(t *testing.T) {
	t.Parallel()
	f := &history.Failure{
		Type: "E", Message: "m", Details: history.Payload(`{"a":"0123456789"}`),
		Cause: &history.Failure{Details: history.Payload(`[1]`)},
	}
	if c := f.Truncate(10, 1); c.Details != nil || c.DetailsOmitted != "18 bytes exceed the limit" ||
		string(c.Cause.Details) != "[1]" {
		t.Errorf("truncated: got %+v, cause %+v", c, c.Cause)
	}
	if again := f.Truncate(10, 1).Truncate(10, 1); again.DetailsOmitted == "" {
		t.Errorf("truncated again: got %+v", again)
	}
}
