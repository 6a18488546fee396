package dispatch_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// If one process completes hundreds of activities, the last completion costs as much as the first. The process does not
// read the outcomes of the other activities.
func TestR26_hundredsArePending_lastCompletionCostsAsMuchAsTheFirst(t *testing.T) {
	t.Parallel()
	const queried = 200
	var mu sync.Mutex
	var tokens []string
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "approve", func(ctx context.Context, _ int) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, perdure.ActivityInfoFrom(ctx).CompletionToken)
		return "", perdure.ErrPending
	})
	perdure.AddOrchestration(r, "all-approvals", func(
		ctx *perdure.OrchestrationContext, n int,
	) (bytes int, err error) {
		answers := make([]*perdure.Future[string], n)
		for i := range answers {
			answers[i] = perdure.CallActivityByName[string](ctx, "approve", i)
		}
		for _, a := range answers {
			text, err := a.Await(ctx)
			if err != nil {
				return bytes, err
			}
			bytes += len(text)
		}
		return bytes, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		in := h.start("all-approvals", queried)
		h.serveFor(time.Minute)
		if len(tokens) != queried {
			t.Fatalf("got %d tokens, want %d", len(tokens), queried)
		}
		result := strings.Repeat("r", 20<<10)
		var reads []float64
		for _, token := range tokens {
			before := h.Cloud.Capacity().Read
			if err := c.CompleteActivity(ctx, token, result); err != nil {
				t.Fatal(err)
			}
			reads = append(reads, h.Cloud.Capacity().Read-before)
			h.serveFor(time.Second)
		}
		if first, last := reads[1], reads[queried-1]; last > 2*first {
			t.Errorf("first completion reads %v units, last one %v", first, last)
		}
		h.finish(in)
		h.checkIdle()
	})
}
