package perduretest_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

func TestForeignGoroutine_callAfterTheInstanceEnded_failsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, loseACall, "its calls are lost", "loseACall")
}

func loseACall(t *testing.T) {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "mail", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		go func() {
			time.Sleep(time.Minute) // a call to another system
			perdure.CallActivityByName[int](ctx, "mail", n)
		}()
		return n, nil
	})
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "order", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = env.Client().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	env.Advance(2 * time.Minute)
}
