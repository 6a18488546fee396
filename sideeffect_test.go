package perdure_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestSideEffect_replay_doesNotRunAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		n := perdure.SideEffect(ctx, func() int { calls++; return calls })
		m, err := perdure.CallActivity(ctx, inc, 1).Await(ctx)
		return n + m, err
	})
	if got := w.run().replayed().output(); got != "3" || calls != 1 {
		t.Errorf("got %s after %d calls", got, calls)
	}
	if ev := w.history[2]; ev.Kind != history.SideEffectRecorded || string(ev.Value) != "1" {
		t.Errorf("got %+v", ev)
	}
}

// The first run returns the same value as a replay, so the value is encoded and decoded.
func TestSideEffect_firstRun_returnsValueDecodedFromJSON(t *testing.T) {
	t.Parallel()
	var saw []int
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (bool, error) {
		at := perdure.SideEffect(ctx, func() any { return struct{ hidden int }{1} })
		m, ok := at.(map[string]any)
		saw = append(saw, len(m))
		return ok, nil
	})
	if got := w.replayed().output(); got != "true" || len(saw) != 2 || saw[0] != saw[1] {
		t.Errorf("got %s, values %v", got, saw)
	}
}

func TestSideEffect_panicOrInvalidValue_fails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		effect         func(*perdure.OrchestrationContext) any
		kind, wantText string
	}{
		"panics": {func(*perdure.OrchestrationContext) any {
			panic("boom")
		}, history.TypePanic, "TestSideEffect_panicOrInvalidValue_fails"},
		"does not encode": {func(*perdure.OrchestrationContext) any {
			return math.NaN()
		}, history.TypeEncode, "encode value of a side effect"},
		"too large": {
			func(*perdure.OrchestrationContext) any { return strings.Repeat("x", perdure.MaxPayloadBytes) },
			history.TypePayloadTooLarge, "value of a side effect",
		},
		"uses the context": {func(ctx *perdure.OrchestrationContext) any {
			return perdure.CallActivity(ctx, inc, 1)
		}, history.TypePanic, "context"},
		"waits": {func(ctx *perdure.OrchestrationContext) any {
			return perdure.Sleep(ctx, time.Hour)
		}, history.TypePanic, "context"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (any, error) {
				return perdure.SideEffect(ctx, func() any { return tt.effect(ctx) }), nil
			})
			if f := w.replayed().failure(); f.Type != tt.kind || !strings.Contains(f.Message, tt.wantText) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestSideEffect_panicRecovered_isRecorded(t *testing.T) {
	t.Parallel()
	calls := 0
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (out string, err error) {
		defer func() {
			r, _ := recover().(error)
			out, err = strings.SplitN(fmt.Sprint(r), "\n", 2)[0], perdure.Sleep(ctx, time.Second)
		}()
		return "", perdure.SideEffect(ctx, func() error {
			calls++
			panic("boom")
		})
	})
	if got := w.run().replayed().output(); got != `"boom"` || calls != 1 {
		t.Errorf("got %s after %d calls", got, calls)
	}
}

func TestSideEffect_otherTypeOnReplay_isNondeterminism(t *testing.T) {
	t.Parallel()
	recordEffect := func(effect func(*perdure.OrchestrationContext)) *world {
		return orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			effect(ctx)
			return 1, nil
		})
	}
	recorded := recordEffect(func(ctx *perdure.OrchestrationContext) {
		perdure.SideEffect(ctx, func() string { return "text" })
	}).history
	for name, tt := range map[string]struct {
		effect func(*perdure.OrchestrationContext)
		got    string
	}{
		"type": {func(ctx *perdure.OrchestrationContext) {
			perdure.SideEffect(ctx, func() int { return 1 })
		}, "SideEffectRecorded of another type"},
		"none": {func(*perdure.OrchestrationContext) {}, "OrchestrationCompleted"},
	} {
		err := recordEffect(tt.effect).open().Replay(recorded)
		var e *perdure.NondeterminismError
		if !errors.As(err, &e) || e.EventID != 3 || e.Expected != "SideEffectRecorded" ||
			!strings.HasPrefix(e.Got, tt.got) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestSetCustomStatus_unchangedValue_isNotRecordedAgain(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for _, s := range []any{
			"packing", "packing", map[string]int{"packed": 1}, map[string]int{"packed": 1}, "packing", nil,
		} {
			ctx.SetCustomStatus(s)
		}
		return 1, nil
	})
	var got []string
	for _, ev := range w.replayed().history {
		if ev.Kind == history.CustomStatusSet {
			got = append(got, string(ev.CustomStatus))
		}
	}
	if strings.Join(got, " ") != `"packing" {"packed":1} "packing" null` {
		t.Errorf("got %s", got)
	}
}

func TestSetCustomStatus_tooLargeOrInvalid_failsOrchestration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status any
		want   history.Failure
	}{
		"too large": {strings.Repeat("x", perdure.MaxCustomStatusBytes-1), history.Failure{
			Type:         history.TypePayloadTooLarge,
			Message:      `payload too large: 16385 bytes, limit 16384: custom status of orchestration "o"`,
			NonRetryable: true,
		}},
		"no JSON": {math.NaN(), history.Failure{
			Type:         history.TypeEncode,
			Message:      `perdure: encode custom status of orchestration "o": json: unsupported value: NaN`,
			NonRetryable: true,
		}},
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			ctx.SetCustomStatus(strings.Repeat("x", perdure.MaxCustomStatusBytes-2)) // exactly at the limit
			ctx.SetCustomStatus(tt.status)
			return 1, nil
		})
		f := w.replayed().failure()
		if f.Cause = nil; f.Type != tt.want.Type || f.Message != tt.want.Message || !f.NonRetryable {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

func ExampleSideEffect() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "greet", func(ctx *perdure.OrchestrationContext, name string) (string, error) {
		greeting := perdure.SideEffect(ctx, func() string { return "Hello" }) // for example from the environment
		ctx.SetCustomStatus("greeting " + name)
		return greeting + ", " + name, nil
	})
	fmt.Println(example(r, "greet", "Ada"))
	// Output: "Hello, Ada"
}
