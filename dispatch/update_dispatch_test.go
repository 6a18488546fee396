package dispatch_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// spread is the number of activities that one update schedules. Its turn is dispatched in three windows of 640 events
// each.
const spread = 1500

// spreadRegistry returns a registry with an orchestration with two updates. One result is in the first window of its
// turn, and the other result is in the last window.
func spreadRegistry() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "spreads", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(
			ctx *perdure.OrchestrationContext, c change,
		) (string, error) {
			if c.Say == "late" {
				for i := range spread {
					perdure.CallActivity(ctx, inc, i)
				}
			}
			return c.Say, nil
		})
		if err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	})
	return r
}

// writesResultOf reports whether a call writes an update result that contains mentions.
func writesResultOf(c simaws.Call, mentions string) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "sk"), "u#") &&
			strings.Contains(text(w.Put.Item, "result"), mentions)
	})
}

// A turn of more than 1,000 outputs has update results in its first and last window. Each result is written, even if
// the dispatch is interrupted before it or repeated. Outputs that were sent before are not resent.
func TestR27_turnIsSentInWindows_everyResultIsWritten(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"", "early", "late"} {
		t.Run("interrupted before "+cut, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: spreadRegistry(), Environments: 2}, func(ctx context.Context, h *hub) {
				in := h.start("spreads", 0)
				h.turn(0)
				h.update(in, "u1", change{Say: "early"})
				h.update(in, "u2", change{Say: "late"})
				cuts := 0
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if cut != "" && cuts == 0 && writesResultOf(c, cut) {
						cuts++
						return errAccess
					}
					return next()
				})
				records := h.receive("sim://inbox.fifo")
				if failed := h.Orchestrators[0].HandleRecords(ctx, records); (len(failed) > 0) != (cut != "") {
					t.Fatalf("of %d records, %d failed", len(records), len(failed))
				}
				segments := map[int64]bool{}
				for _, e := range h.events(in) {
					if e.Kind == history.UpdateCompleted {
						segments[e.ID/spread] = true
					}
				}
				if len(segments) != 2 {
					t.Fatal("the two results are in the same window")
				}
				if cut == "late" {
					h.wantUpdated(in, "u1", provider.UpdateCompleted, "early")
				}
				for range 2 { // and the process crashes before it deletes its messages
					if failed := h.Orchestrators[1].HandleRecords(ctx, records); len(failed) > 0 {
						t.Fatal(failed)
					}
				}
				h.wantUpdated(in, "u1", provider.UpdateCompleted, "early")
				h.wantUpdated(in, "u2", provider.UpdateCompleted, "late")
				sent := sentBy(h.made())
				maps.DeleteFunc(sent, func(what string, _ int) bool {
					return strings.HasPrefix(what, string(provider.MessageUpdate))
				})
				again := 0
				for _, times := range sent {
					again += times - 1
				}
				if len(sent) != spread || again > 640 {
					t.Errorf("got %d of %d activities sent, %d of them again", len(sent), spread, again)
				}
			})
		})
	}
}
