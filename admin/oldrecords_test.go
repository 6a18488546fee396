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

// aged starts the instance "i", which starts the detached instance "loose-old".
// aged then purges "loose-old", waits for 40 days and deletes its expired tombstone.
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

// expire deletes the tombstone of an instance ID if the TTL of the tombstone has expired, as DynamoDB does.
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

// A reconciliation skips starts that are older than MaxReconcileLookback.
// The redispatch that the reconciliation triggers also skips these starts.
func TestReconcile_detachedStartFromFortyDaysAgo_isNotRepeated(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, addHolder, func(h *lost) {
		h.aged()
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if s, err := h.Status(h.ctx, "loose-old"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the instance that was purged 40 days ago is %s again, error %v; want ErrNotFound", s.Status, err)
		}
	})
}

// The redispatch that a redriven dead letter of the instance triggers skips starts older than MaxReconcileLookback.
func TestRedriveDeadLetters_detachedStartFromFortyDaysAgo_isNotRepeated(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, addHolder, func(h *lost) {
		h.aged()
		if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil {
			t.Fatal(err)
		}
		l := &deadLetterHub{Hub: h.Hub, Client: h.Client, operator: h.operator, t: t}
		l.failAll(h.ctx, "corrupt: for now")
		if r, err := h.RedriveDeadLetters(h.ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 1 {
			t.Fatal(r, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if s, err := h.Status(h.ctx, "loose-old"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the instance that was purged 40 days ago is %s again, error %v; want ErrNotFound", s.Status, err)
		}
	})
}

// A redrive does not start an old child again, even if the parent still waits for the child.
// The child had ended, and its outcome is lost. A reconciliation notifies the parent.
func TestRedriveDeadLetters_purgedChildFromFortyDaysAgo_doesNotRunAgain(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		child := h.parentWithLostOutcome()
		time.Sleep(40 * 24 * time.Hour)
		h.expire(child)
		h.emptied()
		if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil {
			t.Fatal(err)
		}
		l := &deadLetterHub{Hub: h.Hub, Client: h.Client, operator: h.operator, t: t}
		l.failAll(h.ctx, "corrupt: for now")
		if r, err := h.RedriveDeadLetters(h.ctx, admin.DeadLetterQuery{}); err != nil || r.Done != 1 {
			t.Fatal(r, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		h.wantStatus("i", client.StatusRunning)
		if so := h.mustReconcile(); so.LostChildren != 1 {
			t.Errorf("the result is %+v; want one lost child", so)
		}
		h.wantOneFailure("its start is too old to determine whether it ran")
	})
}
