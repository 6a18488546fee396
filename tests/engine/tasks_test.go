package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/scenarios"
)

// TestEngineTasks runs each scenario, warm and with each turn replaying the history from its beginning, on a hub of
// which an interceptor hears what turns begin and end: it is all that history has, each once, and as history has it.
func TestEngineTasks(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios.All(tick) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for name, cache := range map[string]int{"warm": 0, "cold": -1} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						r := perdure.NewRegistry()
						s := named(t, s.Name)
						scenarios.Register(r, s)
						h, err := simhub.New(simhub.Options{
							Registry: r, Exclusive: true, Bucket: s.Large, CacheBytes: cache,
							CancelPollInterval: time.Hour, LeaseAfter: time.Hour, Tasks: &simhub.TaskWitness{All: true},
						})
						if err != nil {
							t.Fatal(err)
						}
						defer h.Close()
						if err := onHub(t.Context(), h, s); err != nil {
							t.Error(err)
						}
					})
				})
			}
		})
	}
}
