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

// spread is how many activities one update starts: its turn is sent in three windows, of 640 events each.
const spread = 1500

// spreading registers an orchestration with two updates: one that is answered in the first window of its turn, and one in the last.
func spreading() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "spreads", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		err := perdure.SetUpdateHandler(ctx, "change", func(ctx *perdure.OrchestrationContext, c change) (string, error) {
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

// putsAnswer reports whether a call writes the answer to the update that says so.
func putsAnswer(c simaws.Call, says string) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "sk"), "u#") && strings.Contains(text(w.Put.Item, "result"), says)
	})
}

// Updates that a turn of more than 1,000 outputs answers, in the first of its windows and in the last: each is answered, also where the dispatch is cut before its
// answer is written, or repeated, and what was sent before is not sent again.
func TestR27AnswersOfATurnThatIsSentInWindows(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"", "early", "late"} {
		t.Run("cut before "+cut, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: spreading(), Environments: 2}, func(ctx context.Context, h *hub) {
				in := h.start("spreads", 0)
				h.turn(0)
				h.update(in, "u1", change{Say: "early"})
				h.update(in, "u2", change{Say: "late"})
				cuts := 0
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if cut != "" && cuts == 0 && putsAnswer(c, cut) {
						cuts++
						return errAccess
					}
					return next()
				})
				records := h.receive("sim://inbox.fifo")
				if failed := h.Orchestrators[0].HandleRecords(ctx, records); (len(failed) > 0) != (cut != "") {
					t.Fatalf("of %d records %d failed", len(records), len(failed))
				}
				segments := map[int64]bool{}
				for _, e := range h.events(in) {
					if e.Kind == history.UpdateCompleted {
						segments[e.ID/spread] = true
					}
				}
				if len(segments) != 2 {
					t.Fatal("the two answers are not apart by a window")
				}
				if cut == "late" {
					h.wantUpdated(in, "u1", provider.UpdateCompleted, "early")
				}
				for range 2 { // and the process died before it has deleted its messages
					if failed := h.Orchestrators[1].HandleRecords(ctx, records); len(failed) > 0 {
						t.Fatal(failed)
					}
				}
				h.wantUpdated(in, "u1", provider.UpdateCompleted, "early")
				h.wantUpdated(in, "u2", provider.UpdateCompleted, "late")
				sent := sentBy(h.made())
				maps.DeleteFunc(sent, func(what string, _ int) bool { return strings.HasPrefix(what, string(provider.MessageUpdate)) })
				again := 0
				for _, times := range sent {
					again += times - 1
				}
				if len(sent) != spread || again > 640 {
					t.Errorf("%d of %d activities were sent, %d of them again", len(sent), spread, again)
				}
			})
		})
	}
}
