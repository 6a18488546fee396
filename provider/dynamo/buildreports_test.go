package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// buildsHub is a hub with a clock that only the test advances. It counts the reads and writes of build reports.
type buildsHub struct {
	*dynamo.Provider

	t        *testing.T
	cloud    *simaws.Cloud
	now      time.Time
	reads    int
	writes   int
	failRead bool
}

func newBuildsHub(t *testing.T) *buildsHub {
	t.Helper()
	h := &buildsHub{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return h.now }
	h.cloud = simaws.New(simaws.WithTable(table()), simaws.WithClock(clock), simaws.WithInterceptor(
		func(_ context.Context, c simaws.Call, next func() error) error {
			switch in := c.Input.(type) {
			case *dynamodb.UpdateItemInput:
				h.writes++
			case *dynamodb.GetItemInput:
				if !strings.HasPrefix(in.Key["sk"].(*types.AttributeValueMemberS).Value, "b#") {
					break
				}
				if h.reads++; h.failRead {
					return errors.New("refused")
				}
			}
			return next()
		}))
	p, err := dynamo.New(dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: h.cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}, dynamo.Clients{Table: h.cloud.Table, Queues: h.cloud.Queues}, dynamo.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	h.Provider = p
	return h
}

// report reports a build, and returns the number of writes.
func (h *buildsHub) report(id string, names ...string) (writes int) {
	h.t.Helper()
	b := provider.Build{ID: id, Orchestrations: map[string][]string{}}
	for _, name := range names {
		b.Orchestrations[name] = []string{""}
	}
	before := h.writes
	if err := h.PutBuild(h.t.Context(), b); err != nil {
		h.t.Fatal(err)
	}
	return h.writes - before
}

// A hundred cold starts a second write the item of their build once in each interval, because its partition accepts
// 1,000 write units per second.
func TestPutBuild_hundredColdStartsASecond_writesOncePerInterval(t *testing.T) {
	t.Parallel()
	const seconds = 60
	h, writes := newBuildsHub(t), 0
	for range seconds * 100 {
		writes += h.report("b", "order", "refund")
		h.now = h.now.Add(10 * time.Millisecond)
	}
	if most := int(seconds * time.Second / provider.BuildReportInterval); writes > most {
		t.Errorf("%d cold starts wrote %d reports, want at most %d", seconds*100, writes, most)
	}
	if h.reads != seconds*100 {
		t.Errorf("%d cold starts read the item %d times, want once each", seconds*100, h.reads)
	}
	got, err := h.ReadBuild(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if age := h.now.Sub(got.LastReportedAt); age > provider.BuildReportInterval {
		t.Errorf("the last report is %v old, want at most %v", age, provider.BuildReportInterval)
	}
}

// A report is written if it differs from the stored one, if the stored one is old or its clock was wrong, and if the
// stored one cannot be read.
func TestPutBuild_storedReport_decidesWhetherItWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		passes   time.Duration
		id       string
		names    []string
		failRead bool
		want     int
	}{
		"is young":                     {passes: 5*time.Second - 1, id: "b", names: []string{"order"}},
		"is from a clock 4 s ahead":    {passes: -4 * time.Second, id: "b", names: []string{"order"}},
		"is from a clock an hour fast": {passes: -time.Hour, id: "b", names: []string{"order"}, want: 1},
		"is old":                       {passes: 5 * time.Second, id: "b", names: []string{"order"}, want: 1},
		"has fewer orchestrations":     {id: "b", names: []string{"order", "refund"}, want: 1},
		"is of another build":          {passes: time.Second, id: "c", names: []string{"order"}, want: 1},
		"cannot be read":               {id: "b", names: []string{"order"}, failRead: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newBuildsHub(t)
			if first := h.report("b", "order"); first != 1 {
				t.Fatalf("the first report made %d writes, want 1", first)
			}
			h.now = h.now.Add(c.passes)
			h.failRead = c.failRead
			if got := h.report(c.id, c.names...); got != c.want {
				t.Errorf("got %d writes, want %d", got, c.want)
			}
			h.failRead = false
			last, err := h.LatestBuild(t.Context())
			if err != nil || last.ID != c.id || len(last.Orchestrations) != len(c.names) {
				t.Errorf("the last build is %+v, error %v", last, err)
			}
		})
	}
}

// A rollback deploys a build again, for which ten seconds have passed since its earlier cold starts.
func TestPutBuild_buildIsDeployedAgain_isTheLatest(t *testing.T) {
	t.Parallel()
	h := newBuildsHub(t)
	for _, id := range []string{"old", "old", "new", "new", "old"} {
		h.report(id, "order")
		h.now = h.now.Add(provider.BuildReportInterval / 2)
	}
	if last, err := h.LatestBuild(t.Context()); err != nil || last.ID != "old" {
		t.Errorf("the last build is %q, error %v, want old", last.ID, err)
	}
}
