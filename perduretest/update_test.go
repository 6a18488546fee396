package perduretest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func patient(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	err := perdure.SetUpdateHandler(ctx, "after",
		func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
			if d == 0 {
				return perdure.WaitForExternalEvent[string](ctx, "never").Await(ctx)
			}
			return "done", perdure.Sleep(ctx, d)
		})
	if err != nil {
		return "", err
	}
	return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
}

// Update advances the clock only as far as the handler needs. If the handler cannot end, Update returns an IdleError.
func TestUpdate_handlerSleeps_advancesTheClock(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "patient", patient)
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "patient", 0)
	if err != nil {
		t.Fatal(err)
	}
	began := env.Now()
	if got, err := env.Client().Update(t.Context(), id, "after", 48*time.Hour); err != nil || string(got) != `"done"` {
		t.Errorf("got %s, error %v", got, err)
	}
	if d := env.Now().Sub(began); d < 48*time.Hour || d > 49*time.Hour {
		t.Errorf("got duration %v", d)
	}
	_, err = env.Client().Update(t.Context(), id, "after", time.Duration(0), client.WithUpdateID("u-1"))
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok || idle.InstanceID != id {
		t.Errorf("endless update: got error %v", err)
	}
}
