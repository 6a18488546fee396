package dynamo_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// The number of instances does not change the cost of a page.
func TestListInstances_page_costsOneQueryPerShard(t *testing.T) {
	t.Parallel()
	cloud := simaws.New(simaws.WithTable(table()))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}
	p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 400 {
		if _, err := p.StartOrchestration(t.Context(),
			provider.Start{InstanceID: fmt.Sprint("i", n), Name: "order", StartID: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	q := provider.ListQuery{Limit: 5}
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

// hubOf returns a provider on a table with many completed instances, and a few instances with other attributes.
func hubOf(t *testing.T, many int, few ...map[string]string) (*dynamo.Provider, *simaws.Cloud) {
	t.Helper()
	cloud := simaws.New(simaws.WithTable(table()))
	where := dynamo.HubConfig{
		Name: "h", Table: "perdure", InboxURL: cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{}),
	}
	p, err := dynamo.New(where, dynamo.Clients{Table: cloud.Table, Queues: cloud.Queues})
	if err != nil {
		t.Fatal(err)
	}
	for n := range many {
		at := time.Unix(int64(n), 0).UTC().Format("2006-01-02T15:04:05.000Z")
		it := map[string]types.AttributeValue{}
		for name, v := range map[string]string{
			"pk": fmt.Sprint("i#", n), "sk": "i", "gs": fmt.Sprint(n % 16), "created": fmt.Sprintf("%s#%08x", at, n),
			"updated": at, "status": "Completed", "name": "order",
			"startId": "s", "execution": "x",
		} {
			it[name] = &types.AttributeValueMemberS{Value: v}
		}
		if every := many / max(len(few), 1); n%every == every-1 {
			for name, v := range few[n/every] {
				it[name] = &types.AttributeValueMemberS{Value: v}
			}
		}
		if _, err := cloud.Table.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	cloud.ResetCounts()
	return p, cloud
}

// If the filter selects one of very many instances, each page reads a limited share of the table, and a later page has
// the instance. An API with 30 seconds and 256 MB can return each page.
func TestListInstances_rareMatchInLargeTable_limitsReadsPerPage(t *testing.T) {
	t.Parallel()
	const many = 200_000
	p, cloud := hubOf(t, many, map[string]string{}, map[string]string{"status": "Failed", "name": "refund"},
		map[string]string{
			"version": "1.0.0", "tags": `{"k":"v"}`, "parent": `{"instanceId":"p","executionId":"x","eventId":2}`,
		}, map[string]string{"name": "refund"})
	for name, c := range map[string]struct {
		q    provider.ListQuery
		want []string
	}{
		"status":          {provider.ListQuery{Status: provider.StatusFailed}, []string{"99999"}},
		"name":            {provider.ListQuery{Name: "refund"}, []string{"199999", "99999"}},
		"name and status": {provider.ListQuery{Status: provider.StatusCompleted, Name: "refund"}, []string{"199999"}},
		"neither":         {provider.ListQuery{Name: "nothing"}, nil},
		"tag":             {provider.ListQuery{Tags: map[string]string{"k": "v"}}, []string{"149999"}},
		"parent":          {provider.ListQuery{Parent: "p"}, []string{"149999"}},
		"version":         {provider.ListQuery{Version: "1.0.0"}, []string{"149999"}},
		"before": {
			provider.ListQuery{Name: "refund", StartedBefore: time.Unix(199_999, 0)}, []string{"99999"},
		},
	} {
		var found []string
		pages, most := 0, int64(0)
		for ok := true; ok; ok = c.q.Cursor != "" {
			cloud.ResetCounts()
			page, err := p.ListInstances(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range page.Instances {
				found = append(found, in.InstanceID)
			}
			pages, most, c.q.Cursor = pages+1, max(most, cloud.Counts()["DynamoDB.Query"]), page.NextCursor
		}
		t.Logf("%s: %d of %d instances in %d pages, at most %d queries a page", name, len(found), many, pages, most)
		if !slices.Equal(found, c.want) || most > 32 {
			t.Errorf("%s: found %q, want %q, with up to %d queries a page", name, found, c.want, most)
		}
	}
}

// Blocked instances and instances in deletion are found immediately among any number of instances, with all attributes.
func TestListInstances_blockedOrDeleting_readsTheAttentionIndex(t *testing.T) {
	t.Parallel()
	blocked := func(name, at string) map[string]string {
		return map[string]string{
			"status": "Blocked", "attention": "blocked", "blockedBy": "b1", "updated": at,
			"diagnosis": `{"type":"unregistered","message":"m"}`, "name": name,
		}
	}
	gone := blocked("order", "2026-01-05T00:00:00.000Z")
	gone["status"] = "Running" // the index is not updated yet
	p, cloud := hubOf(t, 50_000, blocked("order", "2026-01-03T00:00:00.000Z"), gone,
		blocked("refund", "2026-01-04T00:00:00.000Z"), blocked("order", "2026-01-02T00:00:00.000Z"),
		map[string]string{
			"status": "Deleting", "attention": "deleting", "deleting": "x", "updated": "2026-01-02T00:00:00.000Z",
		})
	for name, c := range map[string]struct {
		q    provider.ListQuery
		want []string
	}{
		"blocked": {provider.ListQuery{Status: provider.StatusBlocked}, []string{"29999", "9999", "39999"}},
		"one by one": {
			provider.ListQuery{Status: provider.StatusBlocked, Limit: 1}, []string{"29999", "9999", "39999"},
		},
		"of a name": {
			provider.ListQuery{Status: provider.StatusBlocked, Name: "order", Limit: 1}, []string{"9999", "39999"},
		},
		"started later": {
			provider.ListQuery{Status: provider.StatusBlocked, StartedAfter: time.Unix(20_000, 0)},
			[]string{"29999", "39999"},
		},
		"being deleted":   {provider.ListQuery{Status: provider.StatusDeleting}, []string{"49999"}},
		"of another name": {provider.ListQuery{Status: provider.StatusDeleting, Name: "refund"}, nil},
	} {
		cloud.ResetCounts()
		var found []string
		for ok := true; ok; ok = c.q.Cursor != "" {
			page, err := p.ListInstances(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range page.Instances {
				found = append(found, in.InstanceID)
				if in.Status == provider.StatusBlocked &&
					(in.Diagnosis == nil || in.Diagnosis.Type != "unregistered") || in.StartID != "s" ||
					in.CreatedAt.IsZero() {
					t.Errorf("%s: %+v is not complete", name, in)
				}
			}
			c.q.Cursor = page.NextCursor
		}
		if n := cloud.Counts()["DynamoDB.Query"]; !slices.Equal(found, c.want) || n > 5*16 {
			t.Errorf("%s: found %q with %d queries, want %q", name, found, n, c.want)
		}
	}
}
