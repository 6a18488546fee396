package latency_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/tests/internal/latency"
)

func TestCurrent_hasDateAndSources(t *testing.T) {
	t.Parallel()
	l := latency.Current()
	if _, err := time.Parse(time.DateOnly, l.AsOf); err != nil {
		t.Error(err)
	}
	for name, d := range l.Calls {
		if d.Source == "" || d.P50 <= 0 || d.P99 <= d.P50 || d.P10 > d.P50 ||
			d.P90 > 0 && (d.P90 < d.P50 || d.P90 > d.P99) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A distribution matches its percentiles and is monotonic between them.
func TestDistribution_matchesItsPercentiles(t *testing.T) {
	t.Parallel()
	for name, d := range latency.Current().Calls {
		for z, ms := range map[float64]float64{-1.2816: d.P10, 0: d.P50, 1.2816: d.P90, 2.3263: d.P99} {
			if ms == 0 {
				continue
			}
			if got, want := d.At(z), time.Duration(ms*float64(time.Millisecond)); (got - want).Abs() > want/100 {
				t.Errorf("%s at %v: %v, want %v", name, z, got, want)
			}
		}
		for z := -4.0; z < 4; z += 0.1 {
			if d.At(z+0.1) < d.At(z) {
				t.Errorf("%s: not monotonic at %v", name, z+0.1)
			}
		}
		if m := d.Mean(); m < d.At(0) || m > d.At(2.3263) {
			t.Errorf("%s: the mean is %v", name, m)
		}
	}
	two := latency.Distribution{P50: 5, P99: 20}
	if got, want := two.Mean(), 5967*time.Microsecond; (got - want).Abs() > want/50 { // the mean is exp(mu + sigma²/2)
		t.Errorf("the mean of a lognormal distribution is %v, want %v", got, want)
	}
}
