package perdure_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

type order struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
}

// text returns a string that encodes to the given number of bytes.
func text(bytes int) string { return strings.Repeat("x", bytes-2) }

func TestInput_fieldOfWrongType_failureNamesField(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, order) (int, error) {
		t.Error("the function ran")
		return 0, nil
	})
	perdure.AddOrchestration(r, "fulfil", func(*perdure.OrchestrationContext, order) (int, error) {
		t.Error("the function ran")
		return 0, nil
	})
	bad := json.RawMessage(`{"id":"1","total":"much"}`)
	a, _ := codeOf(r).Activity("charge")
	_, f := a.Run(t.Context(), bad)
	for kind, f := range map[string]history.Failure{
		`activity "charge"`: *f, `orchestration "fulfil"`: newWorld(t, r).start("fulfil", bad).failure(),
	} {
		for _, part := range []string{"perdure: decode input of " + kind, "order.total", "string"} {
			if !strings.Contains(f.Message, part) {
				t.Errorf("message %q does not contain %q", f.Message, part)
			}
		}
		if f.Type != history.TypeDecode || !f.NonRetryable {
			t.Errorf("got %+v", f)
		}
	}
}

func TestActivityInput_emptyOrNull_isZeroValue(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "none", func(_ context.Context, in struct{}) (struct{}, error) { return in, nil })
	perdure.AddActivity(r, "pointer", func(_ context.Context, in *order) (*order, error) { return in, nil })
	perdure.AddActivity(r, "number", func(_ context.Context, in int) (any, error) { return in, nil })
	for name, want := range map[string]string{"none": "{}", "pointer": "null", "number": "0"} {
		a, _ := codeOf(r).Activity(name)
		for _, input := range []json.RawMessage{nil, {}, json.RawMessage("null")} {
			if out, f := a.Run(t.Context(), input); f != nil || string(out) != want {
				t.Errorf("%s of %q: got %s, %+v", name, input, out, f)
			}
		}
	}
}

func TestActivityInput_invalidJSON_isADecodeFailure(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	a, _ := codeOf(r).Activity("inc")
	for _, input := range []string{"{", "1 2", "\x00", "01"} {
		if out, f := a.Run(t.Context(), json.RawMessage(input)); f == nil || f.Type != history.TypeDecode {
			t.Errorf("%q: got %s, %+v", input, out, f)
		}
	}
}

func TestResult_unsupportedType_isAnEncodeFailure(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (any, error) { return make(chan int), nil })
	a, _ := codeOf(r).Activity("a")
	_, f := a.Run(t.Context(), json.RawMessage("1"))
	if f == nil || f.Type != history.TypeEncode || !f.NonRetryable ||
		!strings.Contains(f.Message, `encode result of activity "a": json: unsupported type: chan int`) {
		t.Errorf("got %+v", f)
	}
	w := orchestrate(t, func(*perdure.OrchestrationContext, int) (any, error) { return make(chan int), nil })
	if f := w.failure(); f.Type != history.TypeEncode ||
		!strings.Contains(f.Message, `encode output of orchestration "o"`) {
		t.Errorf("got %+v", f)
	}
}

func TestCallActivity_inputDoesNotEncode_failsFuture(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "inc", make(chan int)).Await(ctx)
	})
	if f := w.replayed().failure(); f.Type != history.TypeEncode || len(w.history) != 3 {
		t.Errorf("got %+v and %d events", f, len(w.history))
	}
}

func TestAwait_resultDoesNotDecode_returnsError(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		f := perdure.CallActivityByName[order](ctx, "inc", 1)
		if err := perdure.WhenAll(ctx, f); err != nil {
			return 0, errors.New("the activity did not fail")
		}
		_, err := f.Await(ctx)
		return 0, err
	})
	if f := w.run().replayed().failure(); f.Type != history.TypeDecode ||
		!strings.Contains(f.Message, `decode result of activity "inc"`) {
		t.Errorf("got %+v", f)
	}
}

func TestMaxPayloadBytes_oneByteMore_isTooLarge(t *testing.T) {
	t.Parallel()
	echo := func(_ context.Context, n int) (string, error) { return text(n), nil }
	for name, size := range map[string]int{
		"at the limit": perdure.MaxPayloadBytes, "over it": perdure.MaxPayloadBytes + 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := size > perdure.MaxPayloadBytes
			var input, result error
			r := perdure.NewRegistry()
			perdure.AddActivity(r, "echo", echo)
			perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				_, result = perdure.CallActivityByName[string](ctx, "echo", size).Await(ctx)
				f := perdure.CallActivityByName[string](ctx, "missing", text(size))
				if over {
					_, input = f.Await(ctx)
				}
				return text(size), nil
			})
			w := newWorld(t, r).start("o", 1).run().replayed()
			if !over {
				if result != nil || w.output() != `"`+text(size)+`"` {
					t.Error(result)
				}
				return
			}
			wantTooLarge(t, input, `input of activity "missing"`, size)
			wantTooLarge(t, result, `result of activity "echo"`, size)
			if f := w.failure(); f.Type != history.TypePayloadTooLarge ||
				!strings.HasSuffix(f.Message, `output of orchestration "o"`) || !f.NonRetryable {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func wantTooLarge(t *testing.T, err error, what string, size int) {
	t.Helper()
	var e *perdure.PayloadTooLargeError
	if !errors.As(err, &e) || *e != (perdure.PayloadTooLargeError{Name: what, Bytes: size, Limit: 200 << 10}) {
		t.Errorf("%s: got error %v", what, err)
	}
}

// A payload that has the fields of a reference of the engine is passed on unchanged.
func TestPayload_looksLikeReference_isUnchanged(t *testing.T) {
	t.Parallel()
	type reference struct {
		Ref    string `json:"ref"`
		SHA256 string `json:"sha256"`
		Bytes  int    `json:"bytes"`
	}
	r := perdure.NewRegistry()
	same := func(_ context.Context, in reference) (reference, error) { return in, nil }
	perdure.AddActivity(r, "same", same)
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, in reference) (int, error) {
		out, err := perdure.CallActivityByName[reference](ctx, "same", in).Await(ctx)
		if out != in {
			t.Errorf("got %+v, want %+v", out, in)
		}
		return 0, err
	})
	newWorld(t, r).start("o", reference{"s3://b/k", "abc", 5}).run().replayed().output()
}
