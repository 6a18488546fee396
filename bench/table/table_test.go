package table_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/bench/measure"
	"github.com/perdure/perdure/bench/table"
	"github.com/perdure/perdure/bench/workload"
)

// result returns a result of 200 activities in 40 instances, which took two seconds.
func result(peer, name string) table.Result {
	return table.Result{
		Peer: peer, Workload: name,
		Outcome: workload.Outcome{
			Instances: 40, Activities: 200, Wall: 2 * time.Second, ShortEach: 100 * time.Microsecond,
			LongEach: 250 * time.Microsecond,
		},
		Used: measure.Usage{
			Self: 300 * time.Millisecond, Servers: 100 * time.Millisecond, Machine: 400 * time.Millisecond,
			Allocs: 20_000, Bytes: 200 << 10,
		},
		Store: &workload.Store{Calls: 500, Time: 800 * time.Millisecond},
	}
}

func TestResult_values_areForEachActivity(t *testing.T) {
	t.Parallel()
	r := result("a", workload.Sequence)
	added, known := r.Added()
	for what, c := range map[string][2]float64{
		"instances a second":        {r.Rate(), 20},
		"CPU time with servers":     {r.CPU().Seconds(), 0.002},
		"latency":                   {r.Latency().Seconds(), 0.010},
		"latency without the store": {added.Seconds(), 0.006},
		"growth":                    {r.Growth(), 2.5},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s is %v, not %v", what, c[0], c[1])
		}
	}
	if !known {
		t.Error("the added time is unknown")
	}
	r.Store = nil
	if _, known := r.Added(); known {
		t.Error("the added time is known without store calls")
	}
}

func TestResult_zero_returnsZeros(t *testing.T) {
	t.Parallel()
	var r table.Result
	if r.Rate() != 0 || r.CPU() != 0 || r.Latency() != 0 || r.Growth() != 0 {
		t.Errorf("got %v %v %v %v, want zeros", r.Rate(), r.CPU(), r.Latency(), r.Growth())
	}
}

func TestWrite_ratios_areToTheBase(t *testing.T) {
	t.Parallel()
	base, other := result("perdure", workload.Fan5), result("other", workload.Fan5)
	other.Outcome.Wall *= 20
	own := result("perdure-ministack", workload.Fan5) // faster, but also a row of perdure
	failed := result("broken", workload.Fan5)
	failed.Err, failed.Outcome.Wall = "no such server\nat all", time.Millisecond
	all := []table.Result{base, own, other, failed}
	if peer, ratio := table.Ahead(all, "perdure"); peer != "other" || math.Abs(ratio-20) > 1e-9 {
		t.Errorf("ahead of %q by %v, not of other by 20", peer, ratio)
	}
	var out strings.Builder
	table.Write(&out, all, "perdure")
	for _, want := range []string{
		"| perdure | memory | 20 | 2.0 ms | 100 | 2.5 |", "| other | memory | 1 (0.05×) | 2.0 ms (1×) |",
		"| broken | memory | failed: no such server |", "20.0 times", "other",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestWrite_unsupportedWorkload_printsReason(t *testing.T) {
	t.Parallel()
	r := result("a", workload.Cancel)
	r.Cannot = "it has no cancel"
	never := result("b", workload.Cancel)
	never.Outcome.Never = true
	var out strings.Builder
	table.Write(&out, []table.Result{r, never}, "perdure")
	if s := out.String(); !strings.Contains(s, "not measured: it has no cancel") ||
		!strings.Contains(s, "never (5 s)") {
		t.Error(s)
	}
	if peer, _ := table.Ahead([]table.Result{r}, "perdure"); peer != "" {
		t.Errorf("ahead of %q, with nothing to compare", peer)
	}
}
