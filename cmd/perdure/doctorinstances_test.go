package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// addEnded adds n recently started instances that have ended to the table.
func addEnded(ctx context.Context, h *tool, hub *simhub.Hub, n int) {
	h.t.Helper()
	table := hub.Provider.Config().Table
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	for i := range n {
		id := fmt.Sprintf("over-%d", i)
		it := map[string]types.AttributeValue{}
		for name, value := range map[string]string{
			"pk": "i#" + id, "sk": "i", "name": "hello", "status": "Completed", "startId": id, "execution": id,
			"gs": strconv.Itoa(i % 16), "created": at + "#" + id, "updated": at,
		} {
			it[name] = &types.AttributeValueMemberS{Value: value}
		}
		it["number"] = &types.AttributeValueMemberN{Value: "1"}
		if _, err := hub.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// The list of running instances has many empty pages, because all newer instances have ended.
func TestDoctor_manyEndedInstances_findsRunningOnes(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		healthy(h, hub)
		h.mustRun("start", "hello")
		time.Sleep(time.Second)
		addEnded(ctx, h, hub, 20_000)
		if page, err := hub.Provider.ListInstances(ctx,
			provider.ListQuery{Status: provider.StatusPending}); err != nil || len(page.Instances) > 0 ||
			page.NextCursor == "" {
			h.t.Fatalf("the first page has %d instances, %v: the test has no effect", len(page.Instances), err)
		}
		if err := hub.Provider.PutBuild(ctx,
			provider.Build{ID: "new", Orchestrations: map[string][]string{"other": {""}}}); err != nil {
			h.t.Fatal(err)
		}
		wantDoctor(ctx, h,
			`build new: the orchestration "hello" version "" is not registered, and 1 of its instances have not ended`)
	})
}

// If the table is slow, doctor skips the check of the instances and runs all other checks.
func TestDoctor_tableIsSlow_skipsCheckOfInstances(t *testing.T) {
	t.Parallel()
	var isSlow atomic.Bool
	slow := func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.QueryInput); ok && in.IndexName != nil && isSlow.Load() {
			time.Sleep(20 * time.Second)
		}
		return next()
	}
	onInterceptedAWS(t, slow, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		healthy(h, hub)
		h.mustRun("start", "hello")
		time.Sleep(time.Second)
		addEnded(ctx, h, hub, 20_000)
		if err := hub.Provider.PutBuild(ctx,
			provider.Build{ID: "new", Orchestrations: map[string][]string{"hello": {""}}}); err != nil {
			h.t.Fatal(err)
		}
		isSlow.Store(true)
		began := time.Now()
		code := h.run(ctx, "doctor")
		if got := h.out.String(); code != operations.CodeUnverified || strings.Count(got, "could not be read") != 1 ||
			!strings.Contains(got, "? instances could not be read") || !strings.Contains(got, "perdure versions") ||
			time.Since(began) > 3*time.Minute {
			h.t.Errorf("after %v, doctor exits with %d: %s", time.Since(began), code, got)
		}
	})
}
