package cost_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/cost"
	"github.com/perdure/perdure/tests/internal/meter"
)

// An hour of Follow on an idle instance has the read units of the page.
func TestCostOfWatching_idleInstance_isThatOfThePage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts := meter.New()
		h, err := simhub.New(simhub.Options{
			Registry: cost.Registry(), Logger: slog.New(slog.DiscardHandler),
			Clients: func(c *simaws.Cloud) dynamo.Clients {
				cfg := simsdk.Config()
				counts.AddTo(&cfg)
				return simsdk.Clients(c, cfg)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		c := client.New(h.Provider)
		if _, err := c.Start(t.Context(), "Sleep", 1, client.WithInstanceID("idle")); err != nil {
			t.Fatal(err)
		}
		counts.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for e, err := range c.Follow(ctx, "idle") {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("event %d: %v", e.ID, err)
			}
		}
		units := counts.Counts().Usage()[pricing.ReadUnits]
		if want := cost.WatchPolls * cost.WatchReads; math.Abs(units-want) > want*0.05 {
			t.Errorf("an hour of watching has %.0f read units, docs/operate/cost.md is computed with %.0f", units, want)
		}
	})
}
