package ministack_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/cost"
	"github.com/perdure/perdure/tests/internal/meter"
	"github.com/perdure/perdure/tests/localcloud"
)

// The cost of a shape is measured with AWS in memory. On ministack, with SDK clients and the capacity reported by the
// emulator, the calls, entries and units are the same. The only exception is that ministack counts each read as 4 KB,
// which turns without a cache exceed.
func TestCost_ofEachShape_isTheSameOnMinistackAndInMemory(t *testing.T) {
	t.Parallel()
	for _, s := range cost.Shapes() {
		switch {
		// batches vary, a timer of a day takes too long on ministack, and a shape that waits for a cancel needs its
		// driver
		case s.AtOnce > 0, s.Of == "timers", s.Drive != nil:
			continue
		case s.Count > 100 && strings.HasPrefix(s.Name, "fan-out"):
			s.Name, s.Input, s.Count = strings.Replace(s.Name, "1,000", "100", 1), 100, 100
		case s.Count > 100: // the chain of 10 covers it
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			simulated, err := inMemory(t).Counts(t.Context(), &s)
			if err != nil {
				t.Fatal(err)
			}
			var diff string
			for range measurements {
				local, err := onMinistack(t).Counts(t.Context(), &s)
				if err != nil {
					t.Fatal(err)
				}
				if diff = cmp.Diff(textOf(simulated, s.Cold), textOf(local, s.Cold)); diff == "" {
					return
				}
			}
			t.Errorf("calls differ (-in memory +on ministack):\n%s", diff)
		})
	}
}

// measurements is the number of measurements on ministack. On a busy machine an inline activity may take longer than a
// second. Then the turn makes more calls, because it polls for a cancel and stores the status Running.
const measurements = 4

// textOf returns the counts as text, without bytes, because IDs and times differ in length.
func textOf(counts meter.Counts, withoutReads bool) []string {
	var lines []string
	for k, c := range counts.ByCall() {
		items := []string{}
		if withoutReads {
			delete(c.Usage, pricing.ReadUnits)
		}
		for _, i := range slices.Sorted(maps.Keys(c.Usage)) {
			items = append(items, fmt.Sprintf("%s %.4g", i, c.Usage[i]))
		}
		lines = append(lines,
			fmt.Sprintf("%s %s: %g calls, %g entries, %g failed, %s", k.Call, k.Queue, c.Calls, c.Entries, c.Failed,
				strings.Join(items, ", ")))
	}
	slices.Sort(lines)
	return lines
}

func onMinistack(t *testing.T) *cost.ManualHub {
	t.Helper()
	e := localcloud.NewEmulator()
	where := e.Hub(t, providertest.Config{Visibility: time.Minute}).Provider.(*dynamo.Provider).Config()
	where.PayloadBucket = "" // no shape has large payloads
	where.WorkQueues[perdure.DefaultQueue] = where.WorkQueues[providertest.Queue]
	cfg, m := localcloud.Config(os.Getenv(localcloud.EndpointVariable)), meter.New()
	m.AddTo(&cfg)
	return &cost.ManualHub{
		Metered: dynamo.Clients{Table: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg)}, Meter: m,
		Hub: where, Queues: e.Queues,
	}
}

func inMemory(t *testing.T) *cost.ManualHub {
	t.Helper()
	h, err := simhub.New(simhub.Options{Registry: cost.Registry(), Timers: dynamo.TimersRequeue})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	cfg, m := simsdk.Config(), meter.New()
	m.AddTo(&cfg)
	return &cost.ManualHub{
		Metered: simsdk.Clients(h.Cloud, cfg), Meter: m, Hub: h.Provider.Config(), Queues: h.Cloud.Queues,
	}
}

var _ cost.Queues = (*simaws.Queues)(nil)
