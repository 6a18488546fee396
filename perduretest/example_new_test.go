package perduretest_test //nolint:testableexamples // it needs a test: TestExamples_eachExample_passes has one

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// expire waits at most three days for an approval.
func expire(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	approved, late := perdure.WaitForExternalEvent[string](ctx, "approved"), perdure.CreateTimer(ctx, 72*time.Hour)
	if first, err := perdure.Select(ctx, approved, late); err != nil || first == 1 {
		return "expired", err
	}
	by, err := approved.Await(ctx)
	return "approved by " + by, err
}

// This example tests an orchestration that waits for three days. The test runs in milliseconds.
func ExampleNew() {
	t := exampleT // in your test, its *testing.T

	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "expire", expire)
	env := perduretest.New(t, r)

	id, err := env.Client().Start(t.Context(), "expire", nil)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(71 * time.Hour)
	status, err := env.Client().Status(t.Context(), id)
	if err != nil || status.Status != client.StatusRunning {
		t.Errorf("an hour before: %s, %v", status.Status, err)
	}
	env.Advance(time.Hour)
	status, err = env.Client().Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "expired" {
		t.Errorf("got %q, %v", got, err)
	}
}
