package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A global table replicates each item separately, so a replica may contain only a part of an instance's last
// transaction.

type record = map[string]types.AttributeValue

func recordKey(pk, sk string) record {
	return record{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}}
}

// record reads an item of the table.
func (h *lost) record(pk, sk string) record {
	h.t.Helper()
	table := h.Provider.Config().Table
	out, err := h.Cloud.Table.GetItem(h.ctx, &dynamodb.GetItemInput{TableName: &table, Key: recordKey(pk, sk)})
	if err != nil || len(out.Item) == 0 {
		h.t.Fatalf("%s, %s: got %v, error %v", pk, sk, out, err)
	}
	return out.Item
}

// lacks deletes an item from the table.
func (h *lost) lacks(pk, sk string) {
	h.t.Helper()
	h.record(pk, sk)
	table := h.Provider.Config().Table
	if _, err := h.Cloud.Table.DeleteItem(h.ctx,
		&dynamodb.DeleteItemInput{TableName: &table, Key: recordKey(pk, sk)}); err != nil {
		h.t.Fatal(err)
	}
}

// has writes an item to the table.
func (h *lost) has(it record) {
	h.t.Helper()
	table := h.Provider.Config().Table
	if _, err := h.Cloud.Table.PutItem(h.ctx, &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		h.t.Fatal(err)
	}
}

// addContinues adds an orchestration that continues as new with each event until its input is 0.
func addContinues(_ *lost, r *perdure.Registry) {
	perdure.AddOrchestration(r, "renews", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx); err != nil || n == 0 {
			return 1, err
		}
		return perdure.ContinueAsNew[int](ctx, n-1)
	})
}

// renewed starts the instance "i", which continues as new, and restores the table to the state right after that
// transaction. renewed returns the item of the instance before the transaction, and the ID of the next execution.
func (h *lost) renewed() (before record, next string) {
	h.t.Helper()
	if _, err := h.Start(h.ctx, "renews", 1, client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, time.Minute)
	before = h.record("i#i", "i")
	old := h.wantStatus("i", client.StatusRunning).ExecutionID

	var after simaws.Backup
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		err := next()
		if c.Operation == "TransactWriteItems" && after.Len() == 0 {
			after = h.Cloud.Table.Backup()
		}
		return err
	})
	h.fault.Store(&fault)
	if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, time.Minute)
	h.fault.Store(nil)
	h.Close()
	h.Cloud.Table.Restore(after)
	if next = h.wantStatus("i", client.StatusRunning).ExecutionID; next == old {
		h.t.Fatal("instance i has not continued as new")
	}
	return before, next
}

// The table contains only a part of an instance's last transaction. A reconciliation reports the instance, the instance
// is blocked with the cause, and messages for the instance become dead letters. An operator can terminate the instance.
func TestReconcile_transactionReplicatedInPart_instanceIsBlocked(t *testing.T) {
	t.Parallel()
	for name, torn := range map[string]func(h *lost){
		"a start without its history": func(h *lost) {
			if _, err := h.Start(h.ctx, "renews", 1, client.WithInstanceID("i")); err != nil {
				h.t.Fatal(err)
			}
			h.lacks("x#"+h.wantStatus("i", client.StatusPending).ExecutionID, "h#0000000000")
			h.Close()
		},
		"the next execution, which is missing": func(h *lost) {
			_, next := h.renewed()
			h.lacks("x#"+next, "h#0000000000")
		},
		"the end of the current execution": func(h *lost) {
			before, next := h.renewed()
			h.lacks("x#"+next, "h#0000000000")
			h.has(before)
		},
		"the same, with the next execution": func(h *lost) {
			before, _ := h.renewed()
			h.has(before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, addContinues, func(h *lost) {
				torn(h)
				h.begins(addContinues)
				so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
				if err == nil || so.NotFound != 0 || so.Failed != 1 || len(so.Errors) != 1 ||
					!strings.Contains(so.Errors[0], `"i"`) {
					t.Errorf("Reconcile returned %+v, %v; want one error that names instance i", so, err)
				}
				h.ServeFor(h.ctx, 2*time.Hour)
				s := h.wantStatus("i", client.StatusBlocked)
				if s.Failure == nil || s.Failure.Type != history.TypeCorrupt {
					t.Errorf("instance i is blocked with failure %+v; want type %s", s.Failure, history.TypeCorrupt)
				}
				if visible, hidden, err := h.Provider.CountDeadLetters(h.ctx, provider.QueueInbox); err != nil ||
					visible+hidden != 1 {
					t.Errorf("got %d dead letters, %v; want the message for instance i only", visible+hidden, err)
				}
				if err := h.Terminate(h.ctx, "i", "by the test"); err != nil {
					t.Fatal(err)
				}
				h.ServeFor(h.ctx, time.Minute)
				h.wantStatus("i", client.StatusTerminated)
				if err := h.Purge(h.ctx, "i"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// begins creates another hub with new queues on the same table.
func (h *lost) begins(fill func(h *lost, r *perdure.Registry)) {
	h.t.Helper()
	r := h.registry(true)
	fill(h, r)
	hub, err := simhub.New(simhub.Options{Registry: r, On: h.Hub, NewQueues: "new-", BuildID: "fixed", BatchSize: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
}
