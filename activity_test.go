package perdure_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
)

func TestAddActivity_runWithInput_returnsResult(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	a, ok := codeOf(r).Activity("inc")
	if !ok || a.Name != "inc" {
		t.Fatalf("got %+v", a)
	}
	if out, f := a.Run(t.Context(), json.RawMessage("41")); f != nil || string(out) != "42" {
		t.Errorf("got %s, %+v", out, f)
	}
}

func TestActivity_panic_failsWithMessageAndStack(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { panic("boom") })
	a, _ := codeOf(r).Activity("a")
	out, f := a.Run(t.Context(), json.RawMessage("1"))
	if out != nil || f == nil || f.Type != history.TypePanic || !strings.HasPrefix(f.Message, "boom\n\n") ||
		!strings.Contains(f.Message, "activity_test.go") {
		t.Errorf("got %s, %+v", out, f)
	}
}

func TestActivityInfoFrom_contextOfActivity_returnsItsInfo(t *testing.T) {
	t.Parallel()
	if got := perdure.ActivityInfoFrom(t.Context()); got != (perdure.ActivityInfo{}) {
		t.Errorf("outside a worker: got %+v", got)
	}
	want := perdure.ActivityInfo{
		InstanceID: "i", ExecutionID: "x", ActivityID: 3, Name: "a", Attempt: 1, DeliveryCount: 2, Queue: "q",
	}
	var got perdure.ActivityInfo
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(ctx context.Context, _ int) (int, error) {
		got = perdure.ActivityInfoFrom(ctx)
		return 0, nil
	})
	a, _ := codeOf(r).Activity("a")
	if _, f := a.Run(activityctx.WithInfo(t.Context(), (*activityctx.Info)(&want)), nil); f != nil || got != want {
		t.Errorf("got %+v, %+v", got, f)
	}
}
