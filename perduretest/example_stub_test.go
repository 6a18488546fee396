package perduretest_test

import (
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// This example stubs two activities. One fails twice before it succeeds, and the other takes six hours.
func ExampleEnv_Stub() { //nolint:testableexamples // it needs a test: TestExamples_eachExample_passes has one
	t := exampleT // in your test, its *testing.T

	env := perduretest.New(t, shop())
	env.Stub("charge").Fails(2, errors.New("declined")).Returns(receipt{"8"})
	env.Stub("pack", perdure.OnQueue("warehouse")).Takes(6 * time.Hour).Returns("bag")
	id, err := env.Client().Start(t.Context(), "order", 900)
	if err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[string](status); err != nil || got != "bag for 8" || len(env.Calls("charge")) != 3 {
		t.Errorf("got %q, %v after %+v", got, err, env.Calls())
	}
}
