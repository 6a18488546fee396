package perdure_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

func TestStartOrchestration_detachedInstances_runIndependently(t *testing.T) {
	t.Parallel()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		first, err := perdure.StartOrchestration(ctx, "pack", 7)
		second, again := perdure.StartOrchestration(ctx, "pack", 8, perdure.WithInstanceID("mine"))
		return first + " " + second, errors.Join(err, again, perdure.Sleep(ctx, time.Second))
	})
	want := history.Event{
		ID: 3, Kind: history.DetachedOrchestrationScheduled, Time: epoch, Name: "pack",
		InstanceID: "order-17:01JEXECUTION:3",
		StartID:    "01JEXECUTION:3", Input: history.Payload("7"),
	}
	if !reflect.DeepEqual(w.history[2], want) {
		t.Errorf("got %+v", w.history[2])
	}
	// A failed start is recorded in the history. The code does not see it.
	w.turn(history.Event{Kind: history.OutputFailed, SourceEventID: 4, Error: failedWith(history.TypeAlreadyExists)})
	if got := w.run().replayed().output(); got != `"order-17:01JEXECUTION:3 mine"` {
		t.Error(got)
	}
	for id, want := range map[string]string{
		"order-17:01JEXECUTION:3": `{"Instance":"order-17:01JEXECUTION:3","Weight":8}`,
		"mine":                    `{"Instance":"mine","Weight":9}`,
	} {
		if got := string(w.detached[id].Result); got != want {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

func TestStartOrchestration_withRetry_returnsError(t *testing.T) {
	t.Parallel()
	got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.StartOrchestration(ctx, "pack", 7, perdure.WithRetry(perdure.RetryPolicy{}))
		return err
	})
	if !strings.HasPrefix(got, `perdure: StartOrchestration "pack": WithRetry is not supported`) {
		t.Error(got)
	}
}

func TestWithInstanceID_validID_isUsed(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 1})
	for name, tt := range map[string]struct {
		id   string
		opts []perdure.SubOrchestrationCallOption
	}{
		"short":            {id: "i"},
		"of all kinds":     {id: "a b/ç~2:€"},
		"longest":          {id: strings.Repeat("i", 1024)},
		"longest of retry": {id: strings.Repeat("i", 1008), opts: []perdure.SubOrchestrationCallOption{retry}},
	} {
		w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (bool, error) {
			p, err := perdure.CallSubOrchestration(ctx, pack, 7,
				append(tt.opts, perdure.WithInstanceID(tt.id))...).Await(ctx)
			return p.Instance == tt.id, err
		})
		if got := w.run().replayed().output(); got != "true" || w.history[2].InstanceID != tt.id {
			t.Errorf("%s: got %s, %+v", name, got, w.history[2])
		}
	}
}

// nothingScheduled checks that a call only returned an error, and returns the text of the error.
func nothingScheduled(t *testing.T, call func(*perdure.OrchestrationContext) error) string {
	t.Helper()
	w := parent(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) { return 0, call(ctx) })
	if got := kinds(w.replayed().history[2:]); got != "OrchestrationFailed" {
		t.Errorf("got events %s, want only OrchestrationFailed", got)
		return ""
	}
	return w.failure().Message
}

func TestWithInstanceID_invalidID_returnsError(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{})
	for want, opts := range map[string][]perdure.SubOrchestrationCallOption{
		"instance ID is empty":                            {perdure.WithInstanceID("")},
		"instance ID has 1025 bytes; use 1 to 1024 bytes": {perdure.WithInstanceID(strings.Repeat("i", 1025))},
		"instance ID has 1009 bytes; use 1 to 1008 bytes (WithRetry reserves 16 bytes for the attempt number)": {
			perdure.WithInstanceID(strings.Repeat("i", 1009)), retry,
		},
		"instance ID \"ok\\xff\" is not valid UTF-8":                {perdure.WithInstanceID("ok\xff")},
		"instance ID \"ok\\n\" has a control character at byte 2":   {perdure.WithInstanceID("ok\n")},
		"instance ID \"\\u0085\" has a control character at byte 0": {perdure.WithInstanceID("\u0085")},
	} {
		want = `perdure: WithInstanceID: orchestration "pack": ` + want
		waits := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			f := perdure.CallSubOrchestration(ctx, pack, 7, opts...)
			_, err := f.Await(ctx)
			if !f.IsDone() || perdure.WhenAll(ctx, f).Error() != err.Error() {
				t.Errorf("%s: the future did not fail with this error", want)
			}
			return err
		})
		if waits != want {
			t.Errorf("got %s, want %s", waits, want)
		}
		if len(opts) > 1 {
			continue // a detached orchestration does not support WithRetry
		}
		if got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			id, err := perdure.StartOrchestration(ctx, "pack", 7, opts...)
			if id != "" {
				t.Errorf("%s: got instance %q, want none", want, id)
			}
			return err
		}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOrchestrationInput_tooLargeOrInvalid_returnsError(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]any{
		`perdure: encode input of orchestration "pack": json: unsupported value: NaN`: math.NaN(),
		`payload too large: 204801 bytes, limit 204800: input of orchestration "pack"`: strings.Repeat("x",
			perdure.MaxPayloadBytes-1),
	} {
		waits := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallSubOrchestrationByName[parcel](ctx, "pack", in).Await(ctx)
			return err
		})
		starts := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.StartOrchestration(ctx, "pack", in)
			return err
		})
		if waits != want || starts != want {
			t.Errorf("got %s\nand %s\nwant %s", waits, starts, want)
		}
	}
}

func TestOrchestrationName_empty_panics(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*perdure.OrchestrationContext){
		"call":  func(ctx *perdure.OrchestrationContext) { perdure.CallSubOrchestrationByName[int](ctx, "", 1) },
		"start": func(ctx *perdure.OrchestrationContext) { _, _ = perdure.StartOrchestration(ctx, "", 1) },
	} {
		got := nothingScheduled(t, func(ctx *perdure.OrchestrationContext) error { call(ctx); return nil })
		if !strings.HasPrefix(got, "perdure: orchestration: name is empty\n") {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
