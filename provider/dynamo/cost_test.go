package dynamo_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// A page of a list costs one query a shard, however many instances there are.
func TestAPageIsOneQueryAShard(t *testing.T) {
	t.Parallel()
	cloud := simaws.New(simaws.WithTable(table()))
	where := dynamo.Hub{Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{})}
	p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 400 {
		if _, err := p.StartOrchestration(t.Context(), provider.Start{InstanceID: fmt.Sprint("i", n), Name: "order", StartID: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	q := provider.Query{Limit: 5}
	for range 3 {
		cloud.ResetCounts()
		page, err := p.ListInstances(t.Context(), q)
		if err != nil || len(page.Instances) != 5 {
			t.Fatalf("%d instances, %v", len(page.Instances), err)
		}
		if n := cloud.Counts()["DynamoDB.Query"]; n != 16 {
			t.Errorf("%d queries, want one for each of 16 shards", n)
		}
		q.Cursor = page.NextCursor
	}
}
