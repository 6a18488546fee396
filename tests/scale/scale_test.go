package scale_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/docpage"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/cost"
	"github.com/perdure/perdure/tests/scale"
)

var (
	update = flag.Bool("update", false, "write the figures into docs/operate/scale.md")
	all    = flag.Bool("all", false, "also measure 10,000 instances in flight; takes minutes")
)

// mostActivities is the largest number of simultaneous activities that is simulated. It excludes 10,000 fan-outs of
// 1,000 activities.
const mostActivities = 100_000

// mostOfAStep is the limit for the median time of a step with a worker in the latency model. A change that adds a call
// to a step exceeds it. The time is virtual, so a busy machine changes only which call gets which random latency.
const mostOfAStep = 75 * time.Millisecond

// mostInline is the limit for a step with an inline activity.
const mostInline = 8 * time.Millisecond

func TestLatencyModel_medianStep_isWithinLimit(t *testing.T) {
	t.Parallel()
	most := shortrun.Few(100, mostActivities)
	var rows []*scale.Measured
	for _, s := range scale.Shapes() {
		for _, n := range []int{1, shortrun.Few(20, 100), 10_000} {
			if n > 100 && !*all || n*s.Input > most {
				continue
			}
			m := measure(t, &s, n)
			rows = append(rows, m)
			if most := map[string]time.Duration{
				"Chain": mostOfAStep, "InlineChain": mostInline,
			}[s.Orchestration]; most > 0 && n <= 100 && m.P50 > most {
				t.Errorf("%s, %d in flight: got p50 %v, want at most %v", s.Name, n, m.P50, most)
			}
		}
	}
	var b bytes.Buffer
	if err := scale.WriteTable(&b, rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	if *update {
		if err := docpage.Write("../../docs/operate/scale.md", "measured", b.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func measure(t *testing.T, s *scale.Shape, inFlight int) (m *scale.Measured) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if m, err = scale.Measure(t.Context(), s, inFlight, shortrun.Few(1_000, 10_000)); err != nil {
			t.Fatal(err)
		}
	})
	return m
}

// The calculations of docs/operate/scale.md use the measured cost of a step in a long chain.
func TestScalePage_chainStep_matchesMeasuredWorkload(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(
		`(?m)^\| chain of 1,600, worker \| \d\.\d\d \| 1\.0\d \| 1 \| 6 \| 2 \| (\S+) \|$`,
	).FindSubmatch(page)
	if row == nil {
		t.Fatal("a step of a long chain has other costs than docs/operate/scale.md calculates " +
			"with: 1 write unit, 2 invocations")
	}
	seconds, err := strconv.ParseFloat(string(row[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	// all of the time in a function of 512 MB, or all in a function of 256 MB
	least, most := 1000*seconds/cost.Memory[cost.Orchestrator], 1000*seconds/cost.Memory[cost.Worker]
	for _, want := range []string{
		string(row[1]) + " GB-seconds", fmt.Sprintf("a step takes %.0f to %.0f ms of them", least, most),
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("docs/operate/scale.md does not contain %q", want)
		}
	}
}
