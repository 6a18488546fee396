package perduretest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// A test pauses and resumes an instance. A wait for an instance that is not resumed reports the pause.
func TestPause_waitForPausedInstance_reportsThePause(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "waits", nil)
	env.Advance(time.Second)
	if err := env.Client().Pause(t.Context(), id, "to look at it"); err != nil {
		t.Fatal(err)
	}
	if err := env.Client().RaiseEvent(t.Context(), id, "go", 7); err != nil {
		t.Fatal(err)
	}
	_, err := env.Client().Wait(t.Context(), id)
	if err == nil || !strings.Contains(err.Error(), `Client.Resume: paused since`) ||
		!strings.Contains(err.Error(), "to look at it") {
		t.Errorf("Wait on a paused instance: got error %v", err)
	}
	if err := env.Client().Resume(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if s, err := env.Client().Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted ||
		string(s.Output) != "7" {
		t.Errorf("got %+v, error %v", s, err)
	}
}
