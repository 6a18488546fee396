package perduretest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/perduretest"
)

// endsAtSameTime returns a registry whose orchestration waits for activities and timers that end at the same time, and
// returns their order.
func endsAtSameTime() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "nap", nap)
	perdure.AddOrchestration(r, "race", func(ctx *perdure.OrchestrationContext, runners int) (string, error) {
		var order []string
		for lap := range 2 {
			var fs []perdure.Awaitable
			for range runners {
				fs = append(fs, perdure.CallActivity(ctx, nap, time.Second), perdure.CreateTimer(ctx, time.Second))
			}
			left := make([]int, len(fs))
			for i := range left {
				left[i] = i
			}
			for len(fs) > 0 {
				i, err := perdure.WhenAny(ctx, fs...)
				if err != nil {
					return "", err
				}
				order = append(order, fmt.Sprintf("%d.%d", lap, left[i]))
				fs, left = append(fs[:i:i], fs[i+1:]...), append(left[:i:i], left[i+1:]...)
			}
		}
		return strings.Join(order, " "), nil
	})
	return r
}

// The order is the same in every run, even for work that ends at the same virtual time.
func TestEnv_workEndsAtTheSameTime_orderIsReproducible(t *testing.T) {
	t.Parallel()
	runs := shortrun.Few(100, 1000)
	first := ""
	for n := range runs {
		t.Run("", func(t *testing.T) {
			env := perduretest.New(t, endsAtSameTime())
			s, err := env.Client().Wait(t.Context(), start(t, env, "race", 3))
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(s.Output)
			}
			if string(s.Output) != first {
				t.Fatalf("run %d: got %s, want %s of the first run", n, s.Output, first)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d runs: %s", runs, first)
}
