package perduretest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

func TestWithJitter_setOrNot_retryIntervalVariesOrIsExact(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts        []perduretest.Option
		least, most time.Duration
	}{
		"by default": {nil, time.Minute, time.Minute},
		"with jitter": {
			[]perduretest.Option{perduretest.WithJitter()}, 48 * time.Second, time.Minute - time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failedAt, triedAgainAt time.Time
			r := perdure.NewRegistry()
			perdure.AddActivity(r, "flaky", func(ctx context.Context, _ struct{}) (int, error) {
				if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
					failedAt = time.Now()
					return 0, errors.New("not yet")
				}
				triedAgainAt = time.Now()
				return 2, nil
			})
			perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
				policy := perdure.RetryPolicy{InitialInterval: time.Minute}
				return perdure.CallActivityByName[int](ctx, "flaky", nil, perdure.WithRetry(policy)).Await(ctx)
			})
			env := perduretest.New(t, r, tt.opts...)
			id := start(t, env, "tries", nil)
			if _, err := env.Client().Wait(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if waited := triedAgainAt.Sub(failedAt); waited < tt.least || waited > tt.most {
				t.Errorf("retry: got delay %v, want %v to %v", waited, tt.least, tt.most)
			}
		})
	}
}
