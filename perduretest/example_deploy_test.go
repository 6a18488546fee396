//nolint:thelper // the body of CrashAtEveryCall is a test, not a helper
package perduretest_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// This example deploys another build while an instance waits. The instance continues with the new code.
func ExampleEnv_Deploy() { //nolint:testableexamples // it needs a test: TestExamples_eachExample_passes has one
	t := exampleT // in your test, its *testing.T

	env := perduretest.New(t, approved("v1"))
	id, err := env.Client().Start(t.Context(), "approve", nil)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	env.Deploy(approved("v2"))
	if err := env.Client().RaiseEvent(t.Context(), id, "go", 1); err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "v2" {
		t.Errorf("got %q, %v", got, err)
	}
}

// This example checks that the instance completes, regardless of the call at which a process dies.
func ExampleCrashAtEveryCall() { //nolint:testableexamples // it needs a test: TestExamples_eachExample_passes has one
	t := exampleT // in your test, its *testing.T

	perduretest.CrashAtEveryCall(t, func(t *testing.T, crash perduretest.Option) *perduretest.Env {
		env := perduretest.New(t, shop(), crash)
		env.Stub("pack", perdure.OnQueue("warehouse")).Returns("bag")
		id, err := env.Client().Start(t.Context(), "order", 900)
		if err != nil {
			t.Fatal(err)
		}
		if status, err := env.Client().Wait(t.Context(), id); err != nil || status.Status != client.StatusCompleted {
			t.Errorf("%s, %v", status.Status, err)
		}
		return env
	})
}
