package engine_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// retriedFor is for how long an activity is tried every five seconds: a year is 6.3 million attempts, and takes as many minutes as a day
// takes tenths of a second.
var retriedFor = flag.Duration("retried", 24*time.Hour, "of TestAPolicyThatRetriesEveryFiveSeconds: for how long, in virtual time")

// A policy without limit whose activity fails for as long as it is tried: each attempt runs once and on time, and nothing grows.
func TestAPolicyThatRetriesEveryFiveSeconds(t *testing.T) {
	const every, sample = 5 * time.Second, 62 * time.Second
	attempts, last := 0, time.Time{}
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "fail", func(ctx context.Context, _ int) (int, error) {
		now := time.Now()
		if late := now.Sub(last) - every; attempts > 0 && (late < 0 || late > 100*time.Millisecond) {
			t.Errorf("attempt %d was late by %v", attempts+1, late)
		}
		last = now
		if attempts++; perdure.ActivityInfoFrom(ctx).Attempt != attempts {
			t.Errorf("attempt %d ran where %d was due", perdure.ActivityInfoFrom(ctx).Attempt, attempts)
		}
		return 0, errors.New("not yet")
	})
	perdure.AddOrchestration(r, "patient", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		policy := perdure.RetryPolicy{InitialInterval: every, MaxInterval: every, BackoffCoefficient: 1}
		return perdure.CallActivityByName[int](ctx, "fail", n, perdure.WithRetry(policy)).Await(ctx)
	})
	synctest.Test(t, func(t *testing.T) {
		h, err := simhub.New(simhub.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := client.New(h.Provider).Start(t.Context(), "patient", 1, client.WithInstanceID("a")); err != nil {
			t.Fatal(err)
		}
		in, err := h.Provider.ReadInstance(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		h.ServeFor(t.Context(), sample)
		items, bytes := stored(t, h, in.ExecutionID)
		h.ServeFor(t.Context(), *retriedFor-sample)
		itemsNow, bytesNow := stored(t, h, in.ExecutionID)
		t.Logf("%d attempts in %v; the execution's items were %d of %d bytes after a minute, and are %d of %d", attempts, *retriedFor, items, bytes, itemsNow, bytesNow)
		if want := int(*retriedFor / every); attempts < want*99/100 || itemsNow != items || bytesNow > bytes+10 { // the number of the attempt is longer
			t.Errorf("%d attempts of %d, %d items of %d bytes where there were %d of %d", attempts, want, itemsNow, bytesNow, items, bytes)
		}
	})
}

// stored is what the table holds of an execution.
func stored(t *testing.T, h *simhub.Hub, executionID string) (items, bytes int) {
	t.Helper()
	out, err := h.Cloud.Table.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "x#" + executionID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		for name, v := range it {
			bytes += len(name)
			switch v := v.(type) {
			case *types.AttributeValueMemberS:
				bytes += len(v.Value)
			case *types.AttributeValueMemberN:
				bytes += len(v.Value)
			}
		}
	}
	return len(out.Items), bytes
}
