package dynamo_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
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

// blockedHub is a hub with blocked instances, in the partitions that a test chooses.
type blockedHub struct {
	*dynamo.Provider

	t     *testing.T
	cloud *simaws.Cloud
}

func newBlockedHub(t *testing.T) blockedHub {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(table()))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}
	p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	return blockedHub{p, t, cloud}
}

// put stores an instance that a build has blocked.
func (h blockedHub) put(id, attention, build string, at time.Time) {
	h.t.Helper()
	it := map[string]types.AttributeValue{}
	for name, v := range map[string]string{
		"pk": "i#" + id, "sk": "i", "gs": "0", "created": formatted(at) + "#x", "updated": formatted(at),
		"status": "Blocked", "name": "order",
		"startId": "s", "execution": "x", "attention": attention, "blockedBy": build,
		"diagnosis": `{"type":"unregistered","message":"m"}`,
	} {
		it[name] = &types.AttributeValueMemberS{Value: v}
	}
	if _, err := h.cloud.Table.PutItem(h.t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		h.t.Fatal(err)
	}
}

func formatted(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// list returns the IDs of the blocked instances after a cursor. It reads all pages.
func (h blockedHub) list(limit int, cursor string) (ids []string) {
	h.t.Helper()
	q := provider.ListQuery{Status: provider.StatusBlocked, Limit: limit, Cursor: cursor}
	for more := true; more; more = q.Cursor != "" {
		page, err := h.ListInstances(h.t.Context(), q)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(page.Instances) > limit {
			h.t.Errorf("limit %d: a page has %d instances", limit, len(page.Instances))
		}
		for i := range page.Instances {
			ids = append(ids, page.Instances[i].InstanceID)
		}
		q.Cursor = page.NextCursor
	}
	return ids
}

func partition(n int) string {
	if n == 0 {
		return "blocked"
	}
	return fmt.Sprint("blocked#", n)
}

// Each instance of this release and of earlier ones is listed once, in pages of any size. The latest instance is first.
func TestListBlocked_partitions_areMerged(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	random := rand.New(rand.NewPCG(28, 9))
	type entry struct {
		id        string
		second    int
		partition int
	}
	var want []entry
	for n := range 200 {
		e := entry{fmt.Sprint("i-", n), random.IntN(25), random.IntN(16)}
		h.put(e.id, partition(e.partition), "b1", time.Unix(int64(e.second), 0))
		want = append(want, e)
	}
	slices.SortStableFunc(want, func(a, b entry) int { return cmp.Compare(b.second, a.second) })
	second := map[string]int{}
	for _, e := range want {
		second[e.id] = e.second
	}
	for _, limit := range []int{1, 2, 3, 7, 16, 50, 199, 200, 201, 1000} {
		got, times := h.list(limit, ""), []int(nil)
		for _, id := range got {
			times = append(times, second[id])
		}
		if !slices.IsSortedFunc(times, func(a, b int) int { return b - a }) {
			t.Errorf("limit %d: not sorted by descending time: %v", limit, times)
		}
		if slices.Sort(got); len(got) != len(want) || len(slices.Compact(got)) != len(want) {
			t.Errorf("limit %d: %d instances are listed, want %d", limit, len(got), len(want))
		}
	}
}

// A cursor of an earlier release has no partition, because that release had only the first partition.
func TestListBlocked_cursorOfAnEarlierRelease_continues(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	for n := range 10 {
		h.put(fmt.Sprint("old-", n), "blocked", "b1", time.Unix(int64(n), 0))
	}
	page, err := h.ListInstances(t.Context(), provider.ListQuery{Status: provider.StatusBlocked, Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := base64.RawURLEncoding.DecodeString(page.NextCursor)
	if err != nil || strings.Contains(string(doc), `"p"`) {
		t.Fatalf("cursor %s, %v", doc, err)
	}
	h.put("new", "blocked#7", "b1", time.Unix(3, 0))
	want := []string{"old-5", "old-4", "old-3", "new", "old-2", "old-1", "old-0"}
	if got := h.list(3, page.NextCursor); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestListBlocked_cursorOfUnknownPartition_isRejected(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	for n := range 3 {
		h.put(fmt.Sprint("i-", n), "blocked#3", "b1", time.Unix(int64(n), 0))
	}
	q := provider.ListQuery{Status: provider.StatusBlocked, Limit: 1}
	page, err := h.ListInstances(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := base64.RawURLEncoding.DecodeString(page.NextCursor)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"16", "-1", "99999999999"} {
		q.Cursor = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(doc), `"p":3`, `"p":`+bad, 1)))
		if _, err := h.ListInstances(t.Context(), q); err == nil {
			t.Errorf("partition %s is accepted", bad)
		}
	}
}

// A page of a query ends at 1 MB. The rest of its partition precedes older instances of other partitions.
func TestListBlocked_pageEndsEarly_leavesNothingOut(t *testing.T) {
	t.Parallel()
	h := newBlockedHub(t)
	const many = 1500
	long := strings.Repeat("x", 1000)
	for n := range many {
		h.put(fmt.Sprint(n, "-", long), "blocked#1", "b1", time.Unix(int64(10+n), 0))
	}
	h.put("oldest", "blocked", "b1", time.Unix(1, 0))
	got := h.list(1000, "")
	if len(got) != many+1 || got[many] != "oldest" {
		t.Errorf("%d instances are listed, want %d", len(got), many+1)
	}
}

// found returns the blocked instances of a number of pages, like one run of the sweeper.
func (h blockedHub) found(ctx context.Context, pages int) (ids []string) {
	h.t.Helper()
	for page, err := range h.BlockedInstances(ctx) {
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range page {
			ids = append(ids, page[i].InstanceID)
		}
		if pages--; pages == 0 {
			break
		}
	}
	return ids
}

// report makes a build the last one that has reported.
func (h blockedHub) report(build string) {
	h.t.Helper()
	if err := h.PutBuild(h.t.Context(),
		provider.Build{ID: build, Orchestrations: map[string][]string{"order": {""}}}); err != nil {
		h.t.Fatal(err)
	}
}

// A round finds each blocked instance once, in every partition and for any number of pages per run. Later runs also
// find an instance that was blocked after the round had read its partition.
func TestBlockedInstances_partitions_areFoundOnceEach(t *testing.T) {
	t.Parallel()
	for _, pages := range []int{1, 2, 5, 100} {
		t.Run(fmt.Sprint(pages, " pages a look"), func(t *testing.T) {
			t.Parallel()
			h := newBlockedHub(t)
			var want []string
			for n := range 3000 {
				id := fmt.Sprint("i-", n)
				h.put(id, partition(n%16), "b1", time.Unix(int64(n), 0))
				want = append(want, id)
			}
			h.report("b1")
			_ = h.found(t.Context(), 1) // the first run begins a round for the build that has blocked the instances
			h.report("b2")
			var got []string
			for range 40 {
				got = append(got, h.found(t.Context(), pages)...)
			}
			h.put("since", "blocked#2", "b0", time.Unix(4000, 0))
			for range 40 {
				got = append(got, h.found(t.Context(), pages)...)
			}
			want = append(want, "since")
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%d instances are found, %d of them distinct, want %d", len(got),
					len(slices.Compact(slices.Clone(got))), len(want))
			}
		})
	}
}
