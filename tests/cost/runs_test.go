package cost_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simhub"
)

// The cost estimate of an instance includes the calls for activities with stored runs.
func TestEstimateCost_activitiesWithStoredRuns_includesTheirCalls(t *testing.T) {
	t.Parallel()
	plainCalls, plain := costOfChain(t)
	for name, opt := range map[string]perdure.ActivityCallOption{
		"waited for": perdure.WaitForCancellation(), "at most once": perdure.AtMostOnce(),
	} {
		calls, estimated := costOfChain(t, opt)
		for item, op := range map[pricing.Item]string{
			pricing.WriteUnits: "DynamoDB.UpdateItem", pricing.ReadUnits: "DynamoDB.GetItem",
		} {
			if got, want := estimated[string(item)]-plain[string(item)],
				float64(calls[op]-plainCalls[op]); got != want || want == 0 {
				t.Errorf("%s: got %v more %s by the history, want %v more calls of %s", name, got, item, want, op)
			}
		}
	}
}

// costOfChain runs ten activities in sequence. It returns their calls and the quantities of the cost estimate.
func costOfChain(t *testing.T, opts ...perdure.ActivityCallOption) (calls map[string]int64, of map[string]float64) {
	t.Helper()
	of = map[string]float64{}
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "grow", grow)
		perdure.AddOrchestration(r, "Chain", func(ctx *perdure.OrchestrationContext, s string) (_ string, err error) {
			for range 10 {
				if s, err = perdure.CallActivity(ctx, grow, s, opts...).Await(ctx); err != nil {
					return "", err
				}
			}
			return s, nil
		})
		h, err := simhub.New(simhub.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		c := client.New(h.Provider)
		if _, err := c.Start(t.Context(), "Chain", "x", client.WithInstanceID("order-1")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(t.Context(), time.Hour)
		calls = h.Cloud.Counts()
		estimated, err := admin.New(h.Provider).EstimateCost(t.Context(), "order-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range estimated.Lines {
			of[line.Item] = line.Quantity
		}
	})
	return calls, of
}
