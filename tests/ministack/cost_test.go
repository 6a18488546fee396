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
	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/cost"
	"github.com/perdure/perdure/tests/localcloud"
)

// What a shape costs is counted on AWS in memory: the same calls, entries and units are counted on ministack, where the
// SDK's clients ask over the network and the emulator says by itself what a table consumes. In one thing ministack
// differs: it counts each read as if it were of 4 KB, which cold turns exceed.
func TestCostIsCountedAlikeOnMinistackAndInMemory(t *testing.T) {
	t.Parallel()
	for _, s := range cost.Shapes() {
		switch {
		// batches are as they come, nothing lasts a day here, and what runs until it is cancelled is served by nobody's
		// hand
		case s.AtOnce > 0, s.Of == "timers", s.Drive != nil:
			continue
		case s.Count > 100 && strings.HasPrefix(s.Name, "fan-out"):
			s.Name, s.Input, s.Count = strings.Replace(s.Name, "1,000", "100", 1), 100, 100
		case s.Count > 100: // the chain of 10 is the same, shorter
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			simulated, err := inMemory(t).Counts(t.Context(), &s)
			if err != nil {
				t.Fatal(err)
			}
			var diff string
			for range patience {
				local, err := onMinistack(t).Counts(t.Context(), &s)
				if err != nil {
					t.Fatal(err)
				}
				if diff = cmp.Diff(textOf(simulated, s.Cold), textOf(local, s.Cold)); diff == "" {
					return
				}
			}
			t.Errorf("calls (-in memory +on ministack):\n%s", diff)
		})
	}
}

// patience is how often a shape is counted on ministack: while inline activities run for longer than a second, as on a
// machine that has much else to do, the turn looks once a second whether it is called off, and shows the status
// Running, and is right to.
const patience = 4

// textOf is what was counted, without the bytes: ids and times differ in length.
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

func onMinistack(t *testing.T) *cost.ByHand {
	t.Helper()
	e := localcloud.NewEmulator()
	where := e.Hub(t, providertest.Config{Visibility: time.Minute}).Provider.(*dynamo.Provider).Config()
	where.PayloadBucket = "" // shapes have small payloads
	where.WorkQueues[perdure.DefaultQueue] = where.WorkQueues[providertest.Queue]
	cfg, m := localcloud.Config(os.Getenv(localcloud.EndpointVariable)), meter.New()
	m.AddTo(&cfg)
	return &cost.ByHand{
		Metered: dynamo.Clients{Table: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg)}, Meter: m,
		Hub: where, Queues: e.Queues,
	}
}

func inMemory(t *testing.T) *cost.ByHand {
	t.Helper()
	h, err := simhub.New(simhub.Options{Registry: cost.Registry(), Timers: dynamo.TimersRequeue})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	cfg, m := simsdk.Config(), meter.New()
	m.AddTo(&cfg)
	return &cost.ByHand{
		Metered: simsdk.Clients(h.Cloud, cfg), Meter: m, Hub: h.Provider.Config(), Queues: h.Cloud.Queues,
	}
}

var _ cost.Queues = (*simaws.Queues)(nil)
