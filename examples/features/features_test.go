package features_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/features"
	"github.com/perdure/perdure/perduretest"
)

func newEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	features.Register(r)
	return perduretest.New(t, r)
}

func start(t *testing.T, env *perduretest.Env, name, id string, input any) {
	t.Helper()
	if _, err := env.Client().Start(t.Context(), name, input, client.WithInstanceID(id)); err != nil {
		t.Fatal(err)
	}
}

func raise(t *testing.T, env *perduretest.Env, id, event string, data any) {
	t.Helper()
	if err := env.Client().RaiseEvent(t.Context(), id, event, data); err != nil {
		t.Fatal(err)
	}
}

// result waits until an instance has ended.
func result[T any](t *testing.T, env *perduretest.Env, id string) (T, client.Status) {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Result[T](s)
	if err != nil {
		t.Fatal(err)
	}
	return v, s
}

func TestCountWords_severalTexts_returnsTotal(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	start(t, env, "count-words", "c", []string{"call me Ishmael", "", "mother died today"})
	if n, _ := result[int](t, env, "c"); n != 6 {
		t.Errorf("%d words, want 6", n)
	}
}

func TestApprove_decisionOrTimeout_returnsOutcome(t *testing.T) {
	t.Parallel()
	for want, decision := range map[string]*features.Decision{
		"approved by Ada":     {Approved: true, By: "Ada"},
		"rejected by Grace":   {By: "Grace"},
		"no decision in time": nil,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			env := newEnv(t)
			start(t, env, "approve", "a", features.Request{What: "it", WithinSeconds: 3600})
			env.Advance(59 * time.Minute)
			if decision != nil {
				raise(t, env, "a", "decided", decision)
			}
			if got, s := result[string](t, env, "a"); got != want ||
				string(s.CustomStatus) != `"waiting for a decision on it"` {
				t.Errorf("%s, custom status %s", got, s.CustomStatus)
			}
		})
	}
}

func TestKeepTally_manyNumbers_returnsSumOfAllExecutions(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	start(t, env, "keep-tally", "t", features.Tally{Left: 250})
	for n := range 250 {
		raise(t, env, "t", "number", n)
	}
	sum, s := result[int](t, env, "t")
	if sum != 249*250/2 || s.ExecutionNumber != 3 || string(s.CustomStatus) != `{"sum":31125,"left":0}` {
		t.Errorf("%d in execution %d, custom status %s", sum, s.ExecutionNumber, s.CustomStatus)
	}
}

func TestSubscribe_detachedOrchestration_outlivesItsStarter(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	start(t, env, "subscribe", "s", features.Letters{Reader: "Ada", Count: 3, EverySeconds: 86400})
	id, subscribed := result[string](t, env, "s")
	if took := subscribed.UpdatedAt.Sub(subscribed.CreatedAt); took != 0 || id != "letters/s" {
		t.Errorf("subscribed as %q in %v", id, took)
	}
	env.RunUntilIdle()
	n, s := result[int](t, env, id)
	if took := s.UpdatedAt.Sub(s.CreatedAt); n != 3 || took < 72*time.Hour || took > 72*time.Hour+5*time.Second {
		t.Errorf("%d letters in %v", n, took)
	}
}
