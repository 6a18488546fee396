package scale_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/scale"
)

// Ten thousand instances that a bad deployment blocks at once recover within minutes of a good one;
// docs/operate/runbooks.md has the figures. The watch looks every two minutes, which is not part of them.
func TestRecovery_tenThousandBlockedInstances_takesMinutes(t *testing.T) {
	t.Parallel()
	instances := shortrun.Few(500, 10_000)
	synctest.Test(t, func(t *testing.T) {
		r, err := scale.MeasureRecovery(t.Context(), instances)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d blocked within %v; all woken after %v, all over after %v", r.Instances, r.Blocks, r.Woken,
			r.Recovered)
		if r.Instances != instances || r.Recovered > 5*time.Minute {
			t.Errorf("%+v", r)
		}
	})
}
