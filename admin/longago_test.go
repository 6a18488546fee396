package admin_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

func addHolder(_ *lost, r *perdure.Registry) {
	perdure.AddOrchestration(r, "holder", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.StartOrchestration(ctx, "chain", 1, perdure.WithInstanceID("loose-old")); err != nil {
			return 0, err
		}
		if _, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "f").Await(ctx)
	})
}

// aged makes an instance "i" that has started "loose-old" 40 days ago, which was over, purged, and whose tombstone's
// TTL is over.
func (h *lost) aged() {
	h.t.Helper()
	if _, err := h.Start(h.ctx, "holder", 0, client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, 10*time.Minute)
	if err := h.Purge(h.ctx, "loose-old"); err != nil {
		h.t.Fatal(err)
	}
	time.Sleep(40 * 24 * time.Hour)
	h.expire("loose-old")
}

// expire deletes the tombstone of an id if its TTL is over, as DynamoDB does.
func (h *lost) expire(id string) {
	h.t.Helper()
	table := h.Provider.Config().Table
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "i#" + id}, "sk": &types.AttributeValueMemberS{Value: "i"},
	}
	out, err := h.Cloud.Table.GetItem(h.ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
	if err != nil {
		h.t.Fatal(err)
	}
	ttl, ok := out.Item["ttl"].(*types.AttributeValueMemberN)
	if !ok {
		h.t.Fatalf("%s has no tombstone: %v", id, out.Item)
	}
	if seconds, err := strconv.ParseInt(ttl.Value, 10, 64); err != nil || time.Unix(seconds, 0).After(time.Now()) {
		return
	}
	if _, err := h.Cloud.Table.DeleteItem(h.ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
		h.t.Fatal(err)
	}
}

// A reconciliation leaves out starts of more than MaxReconcileLookback ago, and so does the redispatch to which its
// wake leads.
func TestAnOldDetachedStartDoesNotHappenAgainByTheWakeOfAReconciliation(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, addHolder, func(h *lost) {
		h.aged()
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if s, err := h.Status(h.ctx, "loose-old"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("what was started and purged 40 days ago is %s again, %v; want none", s.Status, err)
		}
	})
}

// So does the redispatch to which any dead letter of the instance leads that is redriven.
func TestAnOldDetachedStartDoesNotHappenAgainByARedrive(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, addHolder, func(h *lost) {
		h.aged()
		if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil {
			t.Fatal(err)
		}
		l := &lettered{Hub: h.Hub, Client: h.Client, operator: h.operator, t: t}
		l.buryAll(h.ctx, "corrupt: for now")
		if r, err := h.RedriveDeadLetters(h.ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 1 {
			t.Fatal(r, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if s, err := h.Status(h.ctx, "loose-old"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("what was started and purged 40 days ago is %s again, %v; want none", s.Status, err)
		}
	})
}

// Nor does the start of a child, however old, which its parent still waits for: the child was over, and its outcome is
// lost. A reconciliation tells the parent.
func TestAnOldChildDoesNotRunAgainByARedrive(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		child := h.untoldParent()
		time.Sleep(40 * 24 * time.Hour)
		h.expire(child)
		h.emptied()
		if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil {
			t.Fatal(err)
		}
		l := &lettered{Hub: h.Hub, Client: h.Client, operator: h.operator, t: t}
		l.buryAll(h.ctx, "corrupt: for now")
		if r, err := h.RedriveDeadLetters(h.ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 1 {
			t.Fatal(r, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		h.wantStatus("i", client.StatusRunning)
		if so := h.mustReconcile(); so.LostChildren != 1 {
			t.Errorf("%+v", so)
		}
		h.wantToldOnce("its start is too old to tell whether it ran")
	})
}
