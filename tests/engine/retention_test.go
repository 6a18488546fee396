package engine_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
)

// atAWS delays each call by a typical latency of AWS.
func atAWS(_ context.Context, c simaws.Call, next func() error) error {
	took := 5 * time.Millisecond
	if c.Operation == "TransactWriteItems" {
		took = 15 * time.Millisecond
	}
	time.Sleep(took + rand.N(took))
	return next()
}

type item = map[string]ddbtypes.AttributeValue

func str(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

// copies stores n copies of an instance, with their own IDs. The function change modifies each copy.
func (h *hub) copies(in provider.Instance, n int, change func(i int, instance item)) {
	h.t.Helper()
	query := &dynamodb.QueryInput{
		TableName: &[]string{"perdure"}[0], KeyConditionExpression: &[]string{"pk = :pk"}[0],
		ExpressionAttributeValues: item{":pk": str("x#" + in.ExecutionID)},
	}
	out, err := h.Cloud.Table.Query(h.t.Context(), query)
	if err != nil {
		h.t.Fatal(err)
	}
	query.ExpressionAttributeValues = item{":pk": str("i#" + in.InstanceID)}
	instance, err := h.Cloud.Table.Query(h.t.Context(), query)
	if err != nil {
		h.t.Fatal(err)
	}
	put := func(it item) {
		if _, err := h.Cloud.Table.PutItem(h.t.Context(),
			&dynamodb.PutItemInput{TableName: &[]string{"perdure"}[0], Item: it}); err != nil {
			h.t.Fatal(err)
		}
	}
	for i := range n {
		id := fmt.Sprintf("copy-%07d", i)
		execution := provider.NewExecutionID(in.CreatedAt, id, "start")
		for _, it := range out.Items {
			part := maps.Clone(it)
			part["pk"] = str("x#" + execution)
			if part["instance"] != nil {
				part["instance"] = str(id)
			}
			put(part)
		}
		it := maps.Clone(instance.Items[0])
		it["pk"], it["execution"], it["gs"] = str("i#"+id), str(execution), str(shardOf(id))
		change(i, it)
		put(it)
	}
}

// shardOf returns the shard of an instance in the indexes.
func shardOf(id string) string {
	f := fnv.New32a()
	_, _ = f.Write([]byte(id))
	return fmt.Sprint(f.Sum32() % 16)
}

// nothing returns a registry with an orchestration that ends at once.
func nothing() *perdure.Registry {
	return build(func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "nothing", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			return n, nil
		}, perdure.WithRetention(30*24*time.Hour))
	})
}

// finished returns a completed instance of the orchestration "nothing".
func (h *hub) finished(ctx context.Context) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(ctx, provider.Start{
		InstanceID: "first", Name: "nothing", Input: []byte("1"), StartID: "start",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(ctx, time.Minute)
	if in, err = h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || in.Status != provider.StatusCompleted {
		h.t.Fatalf("got %+v, error %v", in, err)
	}
	return in
}

// A hundred thousand instances expire on one day, and the renewer was unavailable for three days. As deployed, it
// sweeps every two minutes for at most a minute, and calls have the latency of AWS.
func TestRetention_hundredThousandInstancesDue_areDeletedWithinFiveSweeps(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const instances = 100_000
	slow := false
	withFault(t, nothing(), func(ctx context.Context, c simaws.Call, next func() error) error {
		if slow {
			return atAWS(ctx, c, next)
		}
		return next()
	}, func(ctx context.Context, h *hub) {
		in := h.finished(ctx)
		day := ""
		h.copies(in, instances, func(i int, it item) {
			if due, ok := it["due"].(*ddbtypes.AttributeValueMemberS); ok {
				day = due.Value[:10]
			}
			it["due"] = str(day + "#" + shardOf(fmt.Sprintf("copy-%07d", i)))
		})
		time.Sleep(29 * 24 * time.Hour)
		if _, err := h.Renewer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Provider.ReadInstance(ctx, "copy-0000000"); err != nil {
			t.Fatalf("before the end of the retention: got error %v", err)
		}
		time.Sleep(5 * 24 * time.Hour)
		slow = true
		h.Cloud.ResetCounts()
		ticks, busy := 0, time.Duration(0)
		for {
			began := time.Now()
			limited, stop := context.WithTimeout(ctx, time.Minute)
			_, err := h.Renewer.Sweep(limited)
			stop()
			if err != nil {
				t.Fatal(err)
			}
			ticks++
			busy += time.Since(began)
			if time.Since(began) < 30*time.Second {
				break
			}
			time.Sleep(2*time.Minute - time.Since(began))
		}
		counts, capacity := h.Cloud.Counts(), h.Cloud.Capacity()
		slow = false
		for i := 0; i < instances; i += 7 {
			if _, err := h.Provider.ReadInstance(ctx, fmt.Sprintf("copy-%07d", i)); !errors.Is(err,
				provider.ErrNotFound) {
				t.Fatalf("copy %d was not purged: %v", i, err)
			}
		}
		calls := counts["DynamoDB.GetItem"] + counts["DynamoDB.Query"] + counts["DynamoDB.TransactWriteItems"] +
			counts["DynamoDB.PutItem"] + counts["DynamoDB.UpdateItem"]
		t.Logf("%d instances in %d sweeps: %.0f a second in a sweep, %.0f an hour with a sweep every two minutes; "+
			"%.2f calls, %.1f write units each",
			instances, ticks, instances/busy.Seconds(), float64(instances)/busy.Seconds()*40*30,
			float64(calls)/instances, capacity.Write/instances)
		if ticks > 5 || calls > 4*instances {
			t.Errorf("got %d sweeps, %d calls", ticks, calls)
		}
	})
}
