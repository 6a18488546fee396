package guides_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// Quote returns the faster of two quotes within a minute. The slower activity is cancelled.
func Quote(ctx *perdure.OrchestrationContext, item string) (int, error) {
	scope, cancel := perdure.WithTimeout(ctx, time.Minute)
	defer cancel()
	return perdure.FirstSuccess(scope, []*perdure.Future[int]{
		perdure.CallActivityByName[int](scope, "quote-a", item),
		perdure.CallActivityByName[int](scope, "quote-b", item),
	})
}

// Import deletes imported rows if it is cancelled.
func Import(ctx *perdure.OrchestrationContext, file string) (rows int, err error) {
	rows, err = perdure.CallActivityByName[int](ctx, "import", file).Await(ctx)
	if c, cancelled := errors.AsType[*perdure.CancelledError](err); cancelled {
		ctx.SetCustomStatus("deleting rows: " + c.Message)
		cleanup := perdure.WithoutCancel(ctx)
		_, failed := perdure.CallActivityByName[struct{}](cleanup, "delete-rows", file).Await(cleanup)
		return 0, cmp.Or(failed, err)
	}
	return rows, err
}

// cancelImport cancels an import on behalf of a user of this program.
func cancelImport(ctx context.Context, hub *client.Client, id, user string) error {
	err := hub.Cancel(client.ContextWithCaller(ctx, user), id, "wrong file")
	if errors.Is(err, client.ErrEnded) {
		return nil
	}
	return err
}

// blockUntilCancelled is an activity that runs until its context ends.
func blockUntilCancelled(ctx context.Context, _ string) (int, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func newCancellationEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "quote", Quote)
	perdure.AddOrchestration(r, "import", Import)
	perdure.AddActivity(r, "quote-a", blockUntilCancelled)
	perdure.AddActivity(r, "quote-b", func(context.Context, string) (int, error) {
		time.Sleep(time.Second)
		return 7, nil
	})
	perdure.AddActivity(r, "import", blockUntilCancelled)
	perdure.AddActivity(r, "delete-rows", func(context.Context, string) (none struct{}, err error) { return none, nil })
	return perduretest.New(t, r)
}

func TestFirst_slowerActivity_isCancelled(t *testing.T) {
	t.Parallel()
	env := newCancellationEnv(t)
	if got := run[int](t, env, "quote", "tea"); got != 7 {
		t.Errorf("quote is %d", got)
	}
	env.Advance(time.Second) // until quote-a has observed the cancel
	if calls := env.Calls("quote-a"); len(calls) != 1 || calls[0].Duration > 2*time.Second || calls[0].Error == "" {
		t.Errorf("%+v", calls)
	}
}

func TestWithTimeout_noQuoteInTime_fails(t *testing.T) {
	t.Parallel()
	env := newCancellationEnv(t)
	env.Stub("quote-b").Takes(time.Hour).Returns(7)
	id, err := env.Client().Start(t.Context(), "quote", "tea")
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), id)
	calls := env.Calls("quote-a")
	if err != nil || s.Status != client.StatusFailed || calls[0].Duration.Round(time.Minute) != time.Minute {
		t.Errorf("%s after %+v, %v", s.Status, calls, err)
	}
}

func TestCancel_runningImport_cleansUp(t *testing.T) {
	t.Parallel()
	env := newCancellationEnv(t)
	id, err := env.Client().Start(t.Context(), "import", "prices.csv")
	if err != nil {
		t.Fatal(err)
	}
	env.AfterFunc(time.Minute, func() {
		if err := cancelImport(t.Context(), env.Client(), id, "mia"); err != nil {
			t.Error(err)
		}
	})
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil || s.Status != client.StatusCancelled || string(s.CustomStatus) != `"deleting rows: wrong file"` {
		t.Errorf("%s, %s, %v", s.Status, s.CustomStatus, err)
	}
	if calls := env.Calls("delete-rows"); len(calls) != 1 {
		t.Errorf("%+v", calls)
	}
	if err := cancelImport(t.Context(), env.Client(), id, "mia"); err != nil {
		t.Errorf("after the end: %v", err)
	}

	ctx, hub, cancellations := t.Context(), env.Client(), 0
	for c, err := range hub.Cancellations(ctx, id, "") { // of the current execution
		cancellations++
		if err != nil || c.Reason != string(perdure.ReasonRequested) || c.Message != "wrong file" {
			t.Errorf("%+v, %v", c, err)
		}
		if c.Target == client.TargetInstance && c.RequestedBy != "mia" {
			t.Errorf("requested by %q", c.RequestedBy)
		}
	}
	if cancellations != 2 {
		t.Errorf("%d cancellations, want those of the instance and its activity", cancellations)
	}
}

func TestCancel_blockedInstance_undoesWhenCodeIsDeployed(t *testing.T) {
	t.Parallel()
	env := newCancellationEnv(t)
	id, err := env.Client().Start(t.Context(), "import", "prices.csv")
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Second)
	other := perdure.NewRegistry()
	perdure.AddOrchestration(other, "quote", Quote)
	env.Deploy(other)
	if err := env.Client().Cancel(t.Context(), id, "wrong file"); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	s, err := env.Client().Status(t.Context(), id)
	if err != nil || s.Status != client.StatusBlocked || len(env.Calls("delete-rows")) != 0 {
		t.Errorf("blocked: %s, %v", s.Status, err)
	}

	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "import", Import)
	perdure.AddActivity(r, "import", blockUntilCancelled)
	perdure.AddActivity(r, "delete-rows", func(context.Context, string) (none struct{}, err error) { return none, nil })
	env.Deploy(r)
	s, err = env.Client().Wait(t.Context(), id)
	if err != nil || s.Status != client.StatusCancelled || len(env.Calls("delete-rows")) != 1 {
		t.Errorf("deployed: %s, %v", s.Status, err)
	}
}

func TestCancel_beforeFirstTurn_runsCodeUnlessDelayed(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]string{0: `"deleting rows: wrong file"`, time.Hour: ""} {
		env := newCancellationEnv(t)
		id, err := env.Client().Start(t.Context(), "import", "prices.csv", client.WithDelay(delay))
		if err != nil {
			t.Fatal(err)
		}
		if err := env.Client().Cancel(t.Context(), id, "wrong file"); err != nil {
			t.Fatal(err)
		}
		s, err := env.Client().Wait(t.Context(), id)
		if err != nil || s.Status != client.StatusCancelled || string(s.CustomStatus) != want {
			t.Errorf("delay %s: %s, %s, %v", delay, s.Status, s.CustomStatus, err)
		}
	}
}
