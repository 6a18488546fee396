package perduretest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// Pending shows a retry: the next attempt, its time, and the last error.
func TestPending_activityIsRetried_showsNextAttemptAndError(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, struct{}) (int, error) {
		return 0, errors.New("the bank does not respond")
	})
	perdure.AddOrchestration(r, "pay", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return perdure.CallActivityByName[int](ctx, "charge", nil,
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})).Await(ctx)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "pay", nil)
	began := env.Now()
	env.Advance(4 * time.Minute) // attempts at 0, 1 and 3 minutes; the fourth is due at 7
	p, err := env.Client().Pending(t.Context(), id, "", 0)
	if err != nil || p.Total != 1 {
		t.Fatalf("got %+v, error %v", p, err)
	}
	x := p.Items[0]
	if x.Name != "charge" || x.Attempt != 4 || x.LastError == nil ||
		x.LastError.Message != "the bank does not respond" {
		t.Errorf("got %+v", x)
	}
	if failed, next := x.FailedAt.Sub(began),
		x.NextAttemptAt.Sub(began); failed != 3*time.Minute || next != 7*time.Minute {
		t.Errorf("got failure after %v, next attempt after %v", failed, next)
	}
}
