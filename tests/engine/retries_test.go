package engine_test

import (
	"context"
	"errors"
	"flag"
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
)

// retriedFor is the virtual time of retries every five seconds. A year (8760h) has 6.3 million attempts and takes 22
// minutes of processor time.
var retriedFor = flag.Duration("retried", 24*time.Hour,
	"of TestRetryPolicy_unlimitedRetriesForADay_runsEachOnTimeWithoutGrowth: for how long, in virtual time")

// An activity with an unlimited retry policy always fails. Each attempt runs once and on time. The history and the heap
// do not grow.
func TestRetryPolicy_unlimitedRetriesForADay_runsEachOnTimeWithoutGrowth(t *testing.T) {
	shortrun.Skip(t)
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
	began, used := time.Now(), processorTime(t)
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
		runtime.GC()
		memory, before := heap(), attempts
		h.Cloud.ResetCounts()
		h.ServeFor(t.Context(), *retriedFor-sample)
		logCosts(t, h, attempts-before)
		runtime.GC()
		memoryNow := heap()
		itemsNow, bytesNow := stored(t, h, in.ExecutionID)
		t.Logf("%d attempts in %v; the execution's items were %d of %d bytes after a minute, and are %d of %d; the "+
			"heap was %d KB, and is %d KB", attempts,
			*retriedFor, items, bytes, itemsNow, bytesNow, memory>>10, memoryNow>>10)
		// the number of the attempt has more digits
		if want := int(*retriedFor / every); attempts < want*99/100 || itemsNow != items || bytesNow > bytes+10 {
			t.Errorf("%d attempts of %d, %d items of %d bytes where there were %d of %d", attempts, want, itemsNow,
				bytesNow, items, bytes)
		}
		if memoryNow > memory+8<<20 {
			t.Errorf("the heap has grown by %d KB", (memoryNow-memory)>>10)
		}
	})
	took, cpu := time.Since(began), processorTime(t)-used
	t.Logf("it took %v, and %v of processor time: %v an attempt", took.Round(time.Second), cpu.Round(time.Second),
		cpu/time.Duration(attempts))
}

// logCosts logs the cost of each attempt: calls of the engine, calls of the mappings, and capacity of the table.
func logCosts(t *testing.T, h *simhub.Hub, attempts int) {
	t.Helper()
	counts, units := h.Cloud.Counts(), h.Cloud.Capacity()
	n, all := float64(attempts), 0.0
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		each := float64(counts[op]) / n
		if !strings.HasPrefix(op, "Lambda.") { // calls of the mappings
			all += each
		}
		t.Logf("an attempt takes %.3f %s", each, op)
	}
	t.Logf("an attempt takes %.3f calls, %.2f write units and %.2f read units", all, units.Write/n, units.Read/n)
}

// processorTime returns the processor time of this process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stored returns the number and size of the items of an execution in the table.
func stored(t *testing.T, h *simhub.Hub, executionID string) (items, bytes int) {
	t.Helper()
	out, err := h.Cloud.Table.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
		ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: "x#" + executionID},
		},
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
