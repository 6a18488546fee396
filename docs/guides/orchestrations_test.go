package guides_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// collect adds numbers until none arrives for an hour.
func collect(ctx *perdure.OrchestrationContext, sum int) (int, error) {
	for range 500 {
		number := perdure.WaitForExternalEvent[int](ctx, "number")
		idle := perdure.CreateTimer(ctx, time.Hour)
		if winner, err := perdure.Select(ctx, number, idle); err != nil || winner == 1 {
			return sum, err
		}
		n, err := number.Await(ctx)
		if err != nil {
			return sum, err
		}
		sum += n
	}
	return perdure.ContinueAsNew[int](ctx, sum)
}

func TestCollect_moreNumbersThanOneExecution_continuesAsNew(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "collect", collect)
	env := perduretest.New(t, r, perduretest.WithCache())
	id, err := env.Client().Start(t.Context(), "collect", 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 501 {
		if err := env.Client().RaiseEvent(t.Context(), id, "number", 2); err != nil {
			t.Fatal(err)
		}
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := client.Result[int](status); err != nil || sum != 1002 || status.ExecutionNumber != 2 {
		t.Errorf("got %d, %v in execution %d", sum, err, status.ExecutionNumber)
	}
}
