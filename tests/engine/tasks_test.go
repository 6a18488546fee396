package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/tests/scenarios"
)

// An interceptor receives the tasks that turns start and end. In each scenario these tasks equal the tasks in the
// history, and each is reported once. The scenarios run with cached executions and with a full replay in each turn.
func TestTasks_scenariosWithInterceptor_matchHistory(t *testing.T) {
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
							CancelPollInterval: time.Hour, LeaseAfter: time.Hour, Tasks: &simhub.TaskMonitor{All: true},
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
