package ministack_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/localcloud"
)

// A list of 10,000 instances in pages of 100 returns each instance once, newest first. The time for each page is only
// logged, because ministack reads all instances for each page.
func TestListInstances_tenThousandInPages_returnsEachOnceNewestFirst(t *testing.T) {
	shortrun.Skip(t)
	const instances, size = 10_000, 100
	e := localcloud.NewEmulator()
	hub := e.Hub(t, providertest.Config{Visibility: time.Minute})
	fill(t, e.Tables, hub.Provider, instances)
	seen := map[string]bool{}
	var took []time.Duration
	last := time.Now()
	for q := (provider.ListQuery{Limit: size}); ; {
		began := time.Now()
		page, err := hub.Provider.ListInstances(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		for _, in := range page.Instances {
			if seen[in.InstanceID] || in.CreatedAt.After(last) {
				t.Fatalf("instance %q: listed twice, or after an older instance", in.InstanceID)
			}
			seen[in.InstanceID], last = true, in.CreatedAt
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.Sort(took)
	t.Logf("%d instances in %d pages: a page takes %v at the median, %v at most", len(seen), len(took),
		took[len(took)/2], took[len(took)-1])
	if len(seen) != instances {
		t.Errorf("got %d instances, want %d", len(seen), instances)
	}
}

// fill stores copies of the item of one started instance, because starting all instances would take minutes.
func fill(t *testing.T, tables *dynamodb.Client, p provider.Provider, instances int) {
	t.Helper()
	_, err := p.StartOrchestration(t.Context(), provider.Start{
		InstanceID: "n-0", Name: "order", Input: []byte("1"), StartID: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	table := p.(*dynamo.Provider).Config().Table
	out, err := tables.GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "i#n-0"}, "sk": &types.AttributeValueMemberS{Value: "i"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	created := time.Now().Add(-time.Hour).UTC()
	for from := 1; from < instances; from += 25 {
		var puts []types.WriteRequest
		for n := from; n < min(from+25, instances); n++ {
			copied := maps.Clone(out.Item)
			at := created.Add(time.Duration(n) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
			copied["pk"] = &types.AttributeValueMemberS{Value: fmt.Sprintf("i#n-%d", n)}
			copied["gs"] = &types.AttributeValueMemberS{Value: fmt.Sprint(n % 16)}
			copied["created"] = &types.AttributeValueMemberS{Value: fmt.Sprintf("%s#%08x", at, n)}
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: copied}})
		}
		if _, err := tables.BatchWriteItem(t.Context(),
			&dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}}); err != nil {
			t.Fatal(err)
		}
	}
}
