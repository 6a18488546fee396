package perduretest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// Client.Follow advances virtual time until the instance has ended. It reports an instance that nothing will end.
func TestFollow_instanceWithTimer_advancesTime(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeps", func(ctx *perdure.OrchestrationContext, until string) (int, error) {
		if until != "" {
			return perdure.WaitForExternalEvent[int](ctx, until).Await(ctx)
		}
		return 1, perdure.Sleep(ctx, 3*time.Hour)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "sleeps", "")
	var last history.Event
	for e, err := range env.Client().Follow(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if e.ID != last.ID+1 {
			t.Errorf("event %d after %d", e.ID, last.ID)
		}
		last = e
	}
	if last.Kind != history.OrchestrationCompleted {
		t.Errorf("the last event is %s", last.Kind)
	}

	id = start(t, env, "sleeps", "go")
	var err error
	for _, err = range env.Client().Follow(t.Context(), id) {
		if err != nil {
			break
		}
	}
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok || idle.InstanceID != id {
		t.Errorf("an instance that waits: %v", err)
	}
}
