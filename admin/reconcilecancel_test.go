package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

func addCancelling(_ *lost, r *perdure.Registry) {
	perdure.AddOrchestration(r, "gives-up", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		slow := perdure.CallActivityByName[int](ctx, "slow", 1)
		word := perdure.WaitForExternalEvent[int](ctx, "give up")
		first, err := perdure.Select(ctx, slow, word)
		if err != nil || first == 0 {
			return first, err
		}
		slow.Cancel("enough")
		return perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
	})
}

func textIn(it record, name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	return s.Value
}

// forgottenTurn starts the instance "i" and runs a turn that cancels an activity. forgottenTurn then starts a hub on a
// table with the cancel record of that turn, but without its segment, and returns the segment.
func (h *lost) forgottenTurn() (segment record) {
	h.t.Helper()
	if _, err := h.Start(h.ctx, "gives-up", 0, client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, time.Minute)
	var after simaws.Backup
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		err := next()
		if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && segment == nil {
			segment = in.TransactItems[0].Put.Item
			after = h.Cloud.Table.Backup()
		}
		return err
	})
	h.fault.Store(&fault)
	if err := h.RaiseEvent(h.ctx, "i", "give up", 1); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, time.Minute)
	h.fault.Store(nil)
	h.Close()
	time.Sleep(20 * time.Minute)
	h.Cloud.Table.Restore(after)
	h.lacks(textIn(segment, "pk"), textIn(segment, "sk"))
	h.begins(addCancelling)
	return segment
}

// A turn that cancels activities writes its segment and its cancel record in one transaction.
// An item-by-item copy of the table may have the cancel record without the segment. The cancellation then has no
// effect, and the activity runs.
func TestReconcile_cancelRecordWithoutItsTurn_activityRuns(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, addCancelling, func(h *lost) {
		h.forgottenTurn()
		h.mustReconcile()
		h.wantStatus("i", client.StatusCompleted)
	})
}

// A reconciliation finds a cancel record without its turn and tries to delete the record. If the turn is committed at
// that moment, the record remains.
func TestReconcile_turnOfCancelRecordCommitsMeanwhile_recordRemains(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, addCancelling, func(h *lost) {
		segment := h.forgottenTurn()
		seen := false
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && in.TransactItems[0].Delete != nil && !seen {
				seen = true
				h.has(segment)
			}
			return next()
		})
		h.fault.Store(&fault)
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || !seen {
			t.Fatal(seen, err)
		}
		h.fault.Store(nil)
		h.record(textIn(segment, "pk"), "b"+textIn(segment, "sk")[1:])
	})
}
