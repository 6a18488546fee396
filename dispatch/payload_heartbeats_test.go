package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An activity sends heartbeats with long details for ten minutes, and its codec makes them longer. New details replace
// the old ones in the item. No details are stored in the bucket, where they would remain until the instance is purged.
func TestR28_manyLongHeartbeatDetails_leaveNothingInTheBucket(t *testing.T) {
	t.Parallel()
	r, c := registry(), &turning{id: "turned"}
	perdure.AddActivity(r, "report", func(ctx context.Context, _ int) (string, error) {
		if perdure.ActivityInfoFrom(ctx).Attempt > 1 {
			left, _ := perdure.HeartbeatDetails[string](ctx)
			return left[:3], nil
		}
		for n := range 600 {
			perdure.Heartbeat(ctx, fmt.Sprintf("%03d", n)+strings.Repeat("d", 180<<10))
			time.Sleep(time.Second)
		}
		return "", fmt.Errorf("stopped")
	})
	perdure.AddOrchestration(r, "reports", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.CallActivityByName[string](ctx, "report", 0, perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
	})
	inBubble(t, simhub.Options{
		Registry: r, Codecs: []perdure.Codec{c}, Bucket: true,
	}, func(ctx context.Context, h *hub) {
		in := h.start("reports", 0)
		end := h.finish(in)
		if n := len(must(h.Provider.Payloads().ListPayloads(ctx, provider.PayloadPrefix(in.ExecutionID), ""))); n > 0 ||
			end.Error != nil {
			t.Errorf("got %d payloads left, error %v, want none", n, end.Error)
		}
		h.checkRest()
	})
}
