package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// deletingPartition returns a partition of the deletions in the attention index.
func deletingPartition(n int) string { return strings.Replace(partition(n), "blocked", "deleting", 1) }

// putDeleting stores an instance whose deletion has stopped.
func (h blockedHub) putDeleting(id, attention string, at time.Time) {
	h.t.Helper()
	h.put(id, attention, "", at)
	if _, err := h.cloud.Table.UpdateItem(h.t.Context(), &dynamodb.UpdateItemInput{
		TableName:                aws.String("perdure"),
		Key:                      map[string]types.AttributeValue{"pk": text("i#" + id), "sk": text("i")},
		UpdateExpression:         aws.String("SET #s = :s, deleting = :at, erasing = :x REMOVE blockedBy, diagnosis"),
		ExpressionAttributeNames: map[string]string{"#s": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":s": text("Deleting"), ":at": text(formatted(at)), ":x": text("x"),
		},
	}); err != nil {
		h.t.Fatal(err)
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// deletions returns the deletions that a sweep finds. The sweep ends after a number of steps, like a crash.
func (h blockedHub) deletions(ctx context.Context, steps int) (ids []string) {
	h.t.Helper()
	for page, err := range h.DeletingInstances(ctx) {
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range page {
			ids = append(ids, page[i].InstanceID)
		}
		if steps--; steps == 0 {
			break
		}
	}
	return ids
}

// Purges write to all partitions of the deletions, because one partition accepts 1,000 writes per second.
func TestDeleteInstance_manyInstances_useAllPartitions(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	cloud := simaws.New(simaws.WithTable(table()), simaws.WithInterceptor(
		func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok {
				for i := range in.TransactItems {
					if u := in.TransactItems[i].Update; u != nil && u.ExpressionAttributeValues[":attention"] != nil {
						used[u.ExpressionAttributeValues[":attention"].(*types.AttributeValueMemberS).Value]++
					}
				}
			}
			return next()
		}))
	h, err := dynamo.New(dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 400 {
		id := fmt.Sprint("i-", n)
		if _, err := h.StartOrchestration(t.Context(), provider.Start{
			InstanceID: id, Name: "order", StartID: "start of " + id,
		}); err != nil {
			t.Fatal(err)
		}
		if err := h.DeleteInstance(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 16 {
		if share := used[deletingPartition(n)]; share < 5 || share > 60 {
			t.Errorf("the partition %s has %d of 400 deletions", deletingPartition(n), share)
		}
	}
}

// Each deletion of this release and of earlier ones is found by every complete sweep, and is listed and counted.
func TestDeletingInstances_partitions_areFoundListedAndCounted(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	var want []string
	for n := range 500 {
		id := fmt.Sprint("i-", n)
		h.putDeleting(id, deletingPartition(n%16), time.Unix(int64(n), 0))
		want = append(want, id)
	}
	slices.Sort(want)
	h.putDeleting("moving", "deleting#3", time.Now()) // another process deletes this instance now
	for range 3 {
		got := h.deletions(t.Context(), -1)
		if slices.Sort(got); !slices.Equal(slices.Compact(got), want) {
			t.Errorf("a sweep finds %d instances, want %d", len(got), len(want))
		}
	}
	counts, err := h.CountAttention(t.Context())
	if err != nil || counts.Deleting != len(want) {
		t.Errorf("%d deletions are counted, error %v, want %d", counts.Deleting, err, len(want))
	}

	var listed []string
	q := provider.ListQuery{Status: provider.StatusDeleting, Limit: 70}
	for more := true; more; more = q.Cursor != "" {
		page, err := h.ListInstances(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Instances {
			listed = append(listed, page.Instances[i].InstanceID)
		}
		q.Cursor = page.NextCursor
	}
	if listed[0] != "moving" {
		t.Errorf("%q is listed first, want the latest deletion", listed[0])
	}
	if slices.Sort(listed); !slices.Equal(listed, slices.Sorted(slices.Values(append(want, "moving")))) {
		t.Errorf("%d deletions are listed, want %d", len(listed), len(want)+1)
	}
}

// Every deletion crashes the process of the sweeper. Later sweeps nevertheless reach the deletions of all partitions.
func TestDeletingInstances_processCrashesAtEachStep_allAreReached(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"one partition": 1, "three partitions": 3, "all partitions": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newBlockedHub(t)
			const many = 400
			for n := range many {
				h.putDeleting(fmt.Sprint("i-", n), deletingPartition(n%partitions), time.Unix(int64(n), 0))
			}
			reached := map[string]bool{}
			for range 3 * many / 16 {
				for _, id := range h.deletions(t.Context(), 1) {
					reached[id] = true
				}
			}
			if len(reached) != many {
				t.Errorf("%d of %d deletions were reached", len(reached), many)
			}
		})
	}
}

// A position of an earlier release applies to the first partition, and an earlier release can read a new position.
func TestDeletingInstances_positionOfAnEarlierRelease_continues(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	for n := range 40 {
		h.putDeleting(fmt.Sprint("old-", n), "deleting", time.Unix(int64(n), 0))
	}
	h.putDeleting("new", "deleting#7", time.Unix(3, 0))
	position := func() map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": text("hub"), "sk": text("watch#deleting")}
	}
	it := position()
	it["mark"] = text(`{"updated":"` + formatted(time.Unix(37, 0)) + `","key":"i#old-37"}`)
	if _, err := h.cloud.Table.PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		t.Fatal(err)
	}
	got := h.deletions(t.Context(), 1)
	if slices.Sort(got); !slices.Equal(got, []string{"new", "old-38", "old-39"}) {
		t.Errorf("the first step finds %v, want the deletions behind the position", got)
	}
	out, err := h.cloud.Table.GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: aws.String("perdure"), Key: position()})
	if err != nil {
		t.Fatal(err)
	}
	mark := out.Item["mark"].(*types.AttributeValueMemberS).Value
	want := `{"updated":"` + formatted(time.Unix(39, 0)) + `","key":"i#old-39","more":[`
	if !strings.HasPrefix(mark, want) {
		t.Errorf("the stored position is %s, want %s", mark, want)
	}
	if all := h.deletions(t.Context(), -1); len(all) < 41 {
		t.Errorf("a complete sweep finds %d deletions, want all 41", len(all))
	}
}

// A deletion that an earlier release has marked is completed.
func TestDeleteInstance_markOfAnEarlierRelease_isCompleted(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	h.putDeleting("old", "deleting", time.Unix(1, 0))
	h.putDeleting("new", "deleting#5", time.Unix(1, 0))
	for _, id := range h.deletions(t.Context(), -1) {
		if err := h.DeleteInstance(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
	}
	if left := h.deletions(t.Context(), -1); len(left) > 0 {
		t.Errorf("deletions remain: %v", left)
	}
	for _, id := range []string{"old", "new"} {
		if _, err := h.ReadInstance(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("instance %q: error %v, want ErrNotFound", id, err)
		}
	}
}
