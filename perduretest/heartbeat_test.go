package perduretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// row is the progress of the activity.
type row struct{ N int }

// limits has the timeouts of a call.
type limits struct{ Beat, Close time.Duration }

// imports returns a registry with an activity that takes a minute for each row. Its first attempt hangs in the third
// row, and the next one continues there.
func imports() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "import", func(ctx context.Context, rows int) (int, error) {
		last, again := perdure.HeartbeatDetails[row](ctx)
		for n := last.N + 1; n <= rows; n++ {
			if n == 3 && !again {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			perdure.Heartbeat(ctx, row{n})
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		return rows - last.N, nil
	})
	perdure.AddOrchestration(r, "imports", func(ctx *perdure.OrchestrationContext, l limits) (int, error) {
		opts := []perdure.ActivityCallOption{perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour})}
		if l.Beat > 0 {
			opts = append(opts, perdure.WithHeartbeatTimeout(l.Beat))
		}
		if l.Close > 0 {
			opts = append(opts, perdure.WithScheduleToCloseTimeout(l.Close))
		}
		return perdure.CallActivityByName[int](ctx, "import", 5, opts...).Await(ctx)
	})
	return r
}

func TestHeartbeatTimeout_attemptHangs_nextAttemptContinuesFromDetails(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, imports())
	began := env.Now()
	s, err := env.Client().Wait(t.Context(), start(t, env, "imports", limits{Beat: 2 * time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	// Two rows, the heartbeat timeout in the third, the retry interval, and three rows.
	took := env.Now().Sub(began)
	if n, err := client.Result[int](s); err != nil || n != 3 || took < 66*time.Minute || took > 67*time.Minute {
		t.Errorf("got %d rows after %v, error %v", n, took, err)
	}
}

func TestScheduleToCloseTimeout_attemptHangs_failsWithTimeoutError(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, imports())
	began := env.Now()
	s, err := env.Client().Wait(t.Context(), start(t, env, "imports", limits{Close: time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Result[int](s)
	if took := env.Now().Sub(began); took < time.Hour || took > time.Hour+time.Second {
		t.Errorf("got end after %v", took)
	}
	if e, ok := errors.AsType[*perdure.TimeoutError](err); !ok || !strings.Contains(e.Message, "schedule-to-close") {
		t.Errorf("got error %v", err)
	}
}
