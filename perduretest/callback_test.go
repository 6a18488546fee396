package perduretest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// A test completes an activity with its token. Without a completion, a wait that cannot end names the activity.
func TestCompletionToken_pendingActivity_completesTheInstance(t *testing.T) {
	t.Parallel()
	var token atomic.Value
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "approve", func(ctx context.Context, _ struct{}) (int, error) {
		token.Store(perdure.ActivityInfoFrom(ctx).CompletionToken)
		return 0, perdure.ErrPending
	})
	perdure.AddOrchestration(r, "awaits-approval", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return perdure.CallActivityByName[int](ctx, "approve", nil).Await(ctx)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "awaits-approval", nil)
	_, err := env.Client().Wait(t.Context(), id)
	if err == nil ||
		!strings.Contains(err.Error(),
			`activity "approve", which returned ErrPending in attempt 1; complete it with Client.CompleteActivity or Client.FailActivity`) {
		t.Errorf("Wait on a blocked instance: got error %v", err)
	}
	env.Advance(30 * 24 * time.Hour)
	held, _ := token.Load().(string)
	if err := env.Client().CompleteActivity(t.Context(), held, 7); err != nil {
		t.Fatal(err)
	}
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted ||
		string(s.Output) != "7" {
		t.Errorf("got %+v, error %v", s, err)
	}
}
