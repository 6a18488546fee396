package perdure_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
)

func TestWithRetention_onlyValidDurations_areRegistered(t *testing.T) {
	t.Parallel()
	body := func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil }
	for _, d := range []time.Duration{0, -2, time.Minute, time.Hour - 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("retention of %v: got no panic", d)
				}
			}()
			perdure.WithRetention(d)
		}()
	}
	r := perdure.NewRegistry()
	for name, d := range map[string]time.Duration{"kept": perdure.RetainForever, "brief": time.Hour} {
		perdure.AddOrchestration(r, name, body, perdure.WithRetention(d), perdure.WithVersion("2"))
		if o, ok := codeOf(r).Orchestration(name, "2"); !ok || o.Retention != d {
			t.Errorf("%s: got retention %v, registered %v", name, o.Retention, ok)
		}
	}
}
