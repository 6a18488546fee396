package scale_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/scale"
)

// A bad deployment blocks ten thousand instances at once. They recover within minutes after a good deployment, as
// described in docs/operate/runbooks.md. The figures exclude the interval of two minutes between sweeps.
func TestRecovery_tenThousandBlockedInstances_takesMinutes(t *testing.T) {
	t.Parallel()
	instances := shortrun.Few(500, 10_000)
	synctest.Test(t, func(t *testing.T) {
		r, err := scale.MeasureRecovery(t.Context(), instances)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d blocked within %v; all woken after %v, all ended after %v", r.Instances, r.Blocks, r.Woken,
			r.Recovered)
		if r.Instances != instances || r.Recovered > 5*time.Minute {
			t.Errorf("got %+v", r)
		}
	})
}
