package selftest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The forecast uses the prices of the page.
func TestForecast_prices_matchPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/operate/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	for block, price := range map[string]float64{
		"instance: start, first and last turn": priceInstance, "instance, if all activities are inline": priceInlineInstance,
		"activity, one after another": priceStep, "inline activity, one after another": priceInlineStep,
	} {
		if row := fmt.Sprintf("| %s | %.2f |", block, price); !strings.Contains(string(page), row) {
			t.Errorf("the page does not contain %s", row)
		}
	}
}

func TestNewLatency_samples_haveMedianAndMaximum(t *testing.T) {
	t.Parallel()
	got, err := newLatency("step", []time.Duration{90 * time.Millisecond, 1500 * time.Microsecond, 2 * time.Millisecond})
	if want := (Latency{Name: "step", Samples: 3, P50: 2, Max: 90}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := newLatency("step", nil); err == nil {
		t.Error("a latency without samples was accepted")
	}
}
