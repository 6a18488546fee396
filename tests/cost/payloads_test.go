package cost_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simhub"
)

// grow returns a longer text, so that no two payloads of bulky are equal. A process may have cached an equal payload.
func grow(_ context.Context, s string) (string, error) { return s + "!", nil }

// bulky has one large payload of each kind, except payloads of children.
func bulky(ctx *perdure.OrchestrationContext, s string) (string, error) {
	if !strings.HasPrefix(s, "next") {
		return perdure.ContinueAsNew[string](ctx, "next"+s)
	}
	s += perdure.SideEffect(ctx, func() string { return strings.Repeat("s", perdure.MaxPayloadBytes) })
	told, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	if err != nil {
		return "", err
	}
	for i := range 3 {
		if s, err = perdure.CallActivity(ctx, grow, s+told[:1+i]).Await(ctx); err != nil {
			return "", err
		}
	}
	return perdure.CallActivity(ctx, grow, s+"?", perdure.Inline()).Await(ctx)
}

// The cost estimate of an instance includes the S3 requests of a cached execution.
func TestEstimateCost_largePayloads_includesRequestsToS3(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "grow", grow)
		perdure.AddOrchestration(r, "Bulky", bulky)
		h, err := simhub.New(simhub.Options{Registry: r, Bucket: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		c := client.New(h.Provider)
		large := strings.Repeat("x", perdure.MaxPayloadBytes)
		if _, err := c.Start(t.Context(), "Bulky", large, client.WithInstanceID("order-1")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(t.Context(), time.Minute) // the event must arrive at the second execution only
		if err := c.RaiseEvent(t.Context(), "order-1", "go", "12345"+large); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(t.Context(), time.Hour)
		calls := h.Cloud.Counts()
		s, err := c.Status(t.Context(), "order-1")
		if err != nil || s.Status != client.StatusCompleted {
			t.Fatalf("%s: %+v, %v", s.Status, s.Failure, err)
		}
		reckoned, err := admin.New(h.Provider).EstimateCost(t.Context(), "order-1")
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]float64{}
		for _, line := range reckoned.Lines {
			of[line.Item] = line.Quantity
		}
		if got, want := of[string(pricing.ObjectWrites)],
			float64(calls["S3.PutObject"]+calls["S3.CopyObject"]); got != want || want == 0 {
			t.Errorf("%v writes by its history, %v were made", got, want)
		}
		if got, want := of[string(pricing.ObjectReads)], float64(calls["S3.GetObject"]); got != want || want == 0 {
			t.Errorf("%v reads by its history, %v were made", got, want)
		}
	})
}
