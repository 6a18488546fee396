package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// putItem writes an item to the table unchecked.
func (h *hub) putItem(it map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	if _, err := h.Cloud.Table.PutItem(h.t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) deleteItem(pk, sk string) {
	h.t.Helper()
	_, err := h.Cloud.Table.DeleteItem(h.t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("perdure"),
		Key:       map[string]ddbtypes.AttributeValue{"pk": textValue(pk), "sk": textValue(sk)},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func textValue(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

// completed starts n instances and runs the hub until they have ended.
func (h *hub) completed(n int, id func(i int) string) {
	h.t.Helper()
	for i := range n {
		h.begin(id(i), "nothing", 0)
	}
	h.serveFor(time.Minute)
}

// startJob starts a job.
func (h *hub) startJob(b admin.JobRequest) admin.Job {
	h.t.Helper()
	j, err := admin.New(h.Provider).StartJob(h.t.Context(), b)
	if err != nil {
		h.t.Fatal(err)
	}
	return j
}

// sweepAndRead runs one sweep, ignores its error, and returns the job two minutes later.
func (h *hub) sweepAndRead(j admin.Job) admin.Job {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), time.Minute)
	defer stop()
	_, _ = h.Renewer.Sweep(ctx)
	time.Sleep(2 * time.Minute)
	now, err := admin.New(h.Provider).Job(h.t.Context(), j.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// partitionKeyOf returns the partition key of the item that a call reads or writes.
func partitionKeyOf(c simaws.Call) string {
	switch in := c.Input.(type) {
	case *dynamodb.GetItemInput:
		return text(in.Key, "pk")
	case *dynamodb.TransactWriteItemsInput:
		if put := in.TransactItems[0].Put; put != nil {
			return text(put.Item, "pk")
		}
	}
	return ""
}

var purgeNothing = admin.JobRequest{Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "nothing"}}

// No instance can have started between StartedAfter and StartedBefore. DynamoDB rejects such a query, so the job would
// never end. StartJob rejects the filter, and a job that has such a filter ends.
func TestR22_emptyTimeRange_jobIsRejectedOrEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.completed(3, func(i int) string { return fmt.Sprint("i-", i) })
		ops := admin.New(h.Provider)
		b := purgeNothing
		b.Filter.StartedAfter = time.Now().Add(24 * time.Hour)
		_, err := ops.StartJob(ctx, b)
		_, dry := ops.PreviewJob(ctx, b)
		for _, err := range []error{err, dry} {
			if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != "startedAfter" {
				t.Errorf("got error %v, want a FieldError for startedAfter", err)
			}
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		j := provider.Job{
			ID: "J", Operation: provider.OperationPurge, Filter: b.Filter, State: provider.JobRunning, CreatedAt: now,
			UpdatedAt: now,
		}
		j.Filter.StartedBefore = now
		if err := h.Provider.PutJob(ctx, &j); err != nil {
			t.Fatal(err)
		}
		if j = h.sweepAndRead(j); j.State != provider.JobCompleted || j.Matched != 0 {
			t.Errorf("got job %+v, want completed without matches", j)
		}
	})
}

// The lower bound of a filter is inclusive, and the upper bound is exclusive.
func TestR22_filterBounds_matchExactly(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		ops := admin.New(h.Provider)
		begun := time.Now()
		var instances []provider.Instance
		for i := range 5 {
			instances = append(instances, h.begin(fmt.Sprint("i-", i), "nothing", 0))
			h.serveFor(time.Second)
		}
		time.Sleep(time.Minute)
		for name, want := range map[string]struct {
			f admin.Filter
			n int64
		}{
			"started after":  {admin.Filter{StartedAfter: instances[2].CreatedAt}, 3},
			"started before": {admin.Filter{StartedBefore: instances[2].CreatedAt}, 2},
			"between": {admin.Filter{
				StartedAfter:  instances[1].CreatedAt,
				StartedBefore: instances[3].CreatedAt,
			}, 2},
			"a millisecond": {admin.Filter{
				StartedAfter:  instances[1].CreatedAt,
				StartedBefore: instances[1].CreatedAt.Add(time.Millisecond),
			}, 1},
			"before all":    {admin.Filter{StartedBefore: begun}, 0},
			"ended before":  {admin.Filter{UpdatedBefore: h.read(instances[2]).UpdatedAt}, 2},
			"ended by then": {admin.Filter{UpdatedBefore: h.read(instances[2]).UpdatedAt.Add(time.Millisecond)}, 3},
		} {
			p, err := ops.PreviewJob(ctx, admin.JobRequest{Operation: admin.OperationPurge, Filter: want.f})
			if err != nil || p.Matched != want.n || !p.Complete {
				t.Errorf("%s: got %+v, error %v, want %d matches", name, p, err, want.n)
			}
		}
	})
}

// The time of the sweeper's next check does not change UpdatedAt. The last change of a pending instance is its start.
func TestR22_longPendingInstance_matchesUpdatedBefore(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "stuck")
		time.Sleep(40 * days)
		h.watch()
		b := admin.JobRequest{
			Operation: admin.OperationPurge, Force: true,
			Filter: admin.Filter{UpdatedBefore: time.Now().Add(-30 * days)},
		}
		if p, err := admin.New(h.Provider).PreviewJob(ctx, b); err != nil || p.Matched != 1 {
			t.Errorf("got %+v, error %v, want 1 match", p, err)
		}
	})
}

// One step of a job reads at most 20 pages of 500 instances. The job continues after 21,000 instances that the filter
// does not select, even if one step finds no match.
func TestR22_pagesWithoutAMatch_jobContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		const selected, others = 41, 21_000
		h.completed(1, func(int) string { return "first" })
		key := func(n int) string { return fmt.Sprint("i#other-", n) }
		it := h.item("i#first", "i")
		it["name"] = textValue("other")
		created, rest, _ := strings.Cut(text(it, "created"), "#")
		for n := range others {
			it["pk"], it["created"] = textValue(key(n)), textValue(fmt.Sprintf("%s#%0*d", created, len(rest), n))
			h.putItem(maps.Clone(it))
		}
		h.completed(selected-1, func(i int) string { return fmt.Sprint("i-", i) })

		j := h.sweepAndRead(h.startJob(purgeNothing))
		if j.State != provider.JobCompleted || j.Matched != selected || j.Done != selected {
			t.Errorf("got job %+v, want %d matched and done", j, selected)
		}
		for n := range others { // these items have no history that the final check could read
			h.deleteItem(key(n), "i")
		}
	})
}

// An instance whose item cannot be read counts as failed, and the job continues. Lists include the instance.
func TestR22_unreadableInstance_countsAsFailedAndJobContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const many = 250
		h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
		for _, id := range []string{"i-0", "i-100"} {
			it := h.item("i#"+id, "i")
			it["tags"] = textValue("{")
			h.putItem(it)
		}
		if page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Limit: 1000}); err != nil ||
			len(page.Instances) != many {
			t.Errorf("got %d listed instances, error %v", len(page.Instances), err)
		}
		p, err := admin.New(h.Provider).PreviewJob(ctx, purgeNothing)
		if err != nil || p.Matched != many {
			t.Errorf("preview: got %+v, error %v, want %d matches", p, err, many)
		}
		if j := h.sweepAndRead(h.startJob(purgeNothing)); j.State != provider.JobCompleted || j.Matched != many ||
			j.Done != many-2 || j.Failed != 2 || len(j.Errors) != 2 {
			t.Errorf("got job %+v, want completed with 2 failed", j)
		}
	})
}

// An unreadable job, for example of a later release, does not block other jobs, lists of jobs, or new jobs.
func TestR22_unreadableJob_otherJobsComplete(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.completed(3, func(i int) string { return fmt.Sprint("i-", i) })
		h.putItem(map[string]ddbtypes.AttributeValue{
			"pk": textValue("hub"), "sk": textValue("job#7ZZZ"), "job": textValue(`{"state":7}`),
		})
		narrower := `{"id":"7ZZY","operation":"purge","filter":{"startedBefore":"2100-01-01T00:00:00Z","statuses":["Completed"],"colour":"red"},"force":true,"state":"Running"}`
		// a reader that ignores the unknown filter would purge all instances
		h.putItem(map[string]ddbtypes.AttributeValue{
			"pk": textValue("hub"), "sk": textValue("job#7ZZY"), "job": textValue(narrower),
		})
		j := h.sweepAndRead(h.startJob(purgeNothing))
		if j.State != provider.JobCompleted || j.Done != 3 {
			t.Errorf("got job %+v, want completed with 3 done", j)
		}
		if all, err := client.Collect(admin.New(h.Provider).Jobs(ctx)); err != nil || len(all) != 1 {
			t.Errorf("got %d jobs, error %v, want 1", len(all), err)
		}
	})
}

// A batch of the longest IDs, in characters that JSON escapes, fits the item of the job.
func TestR22_longestInstanceIDs_batchFitsJobItem(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, of := range []string{"<", `"`, "\u2028"} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			h.completed(250, func(i int) string {
				tail := fmt.Sprintf("%04d", i)
				return strings.Repeat(of, (provider.MaxInstanceIDBytes-len(tail))/len(of)) + tail
			})
			if j := h.sweepAndRead(h.startJob(purgeNothing)); j.State != provider.JobCompleted || j.Done != 250 {
				t.Errorf("%q: %s, matched %d, done %d, %.300v", of, j.State, j.Matched, j.Done, j.Errors)
			}
		})
	}
}

// Calls for some instances always exceed the time limit. These instances count as failed, and do not delay the rest of
// their batch, their job, or other jobs.
func TestR22_slowInstances_countAsFailedAndDelayNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const slow = 150
		h.completed(300, func(i int) string { return fmt.Sprint([]string{"slow-", "i-"}[i%2], i) })
		h.begin("alive", "sums", 0)
		h.serveFor(time.Minute)
		other := h.startJob(admin.JobRequest{
			Operation: admin.OperationCancel, Filter: admin.Filter{Orchestration: "sums"},
		})
		time.Sleep(time.Second)
		j := h.startJob(purgeNothing) // the sweeper processes the newest job first
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" && strings.HasPrefix(partitionKeyOf(c), "i#slow-") {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		})
		if other = h.sweepAndRead(other); other.State != provider.JobCompleted || other.Done != 1 {
			t.Errorf("other job: got %+v, want completed with 1 done", other)
		}
		sweeps := 1
		for ; !j.Ended() && sweeps < 60; sweeps++ {
			j = h.sweepAndRead(j)
		}
		if j.State != provider.JobCompleted || j.Matched != 300 || j.Done != 300-slow || j.Failed != slow ||
			!strings.Contains(fmt.Sprint(j.Errors), "time limit of the job step") {
			t.Errorf("got %s, matched %d, done %d, failed %d, errors %v",
				j.State, j.Matched, j.Done, j.Failed, j.Errors)
		}
		t.Logf("job ended after %d sweeps", sweeps)
	})
}

func TestR22_instanceKeepsFailing_isTriedInFiveSweeps(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(2, func(i int) string { return fmt.Sprint("i-", i) })
		j := h.startJob(purgeNothing)
		var mu sync.Mutex
		tried, steps := false, 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			mu.Lock()
			defer mu.Unlock()
			if c.Operation == "TransactWriteItems" && partitionKeyOf(c) == "i#i-0" {
				tried = true
				return simaws.Throttled()
			}
			if in, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(in.Item, "sk"), "job#") &&
				tried {
				tried, steps = false, steps+1
			}
			return next()
		})
		for range 10 {
			j = h.sweepAndRead(j)
		}
		if j.State != provider.JobCompleted || j.Done != 1 || j.Failed != 1 || steps != 5 {
			t.Errorf("got %s after %d steps: done %d, failed %d, errors %v; want completed after 5 steps",
				j.State, steps, j.Done, j.Failed, j.Errors)
		}
	})
}

// For an hour, the sweeper cannot match more instances, for example because an index or a permission is missing. The
// job reports the error, keeps its counts, and continues later.
func TestR22_matchingFailsForAnHour_jobReportsErrorAndKeepsCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(250, func(i int) string { return fmt.Sprint("i-", i) })
		j := h.startJob(purgeNothing)
		var matches atomic.Int64
		var writes atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			q, ok := c.Input.(*dynamodb.QueryInput)
			if ok && aws.ToString(q.IndexName) == "byCreation" && aws.ToInt32(q.Limit) == 500 {
				if matches.Add(1) > 10 {
					return simhub.ErrFailed
				}
			}
			if c.Operation == "TransactWriteItems" {
				writes.Add(1)
			}
			return next()
		})
		for range 30 {
			j = h.sweepAndRead(j)
		}
		if j.Ended() || j.Done == 0 || j.Done != j.Matched || len(j.Errors) != 1 || writes.Load() != j.Done {
			t.Errorf("got %s, matched %d, done %d with %d deletions, errors %v",
				j.State, j.Matched, j.Done, writes.Load(), j.Errors)
		}
		h.interfere(nil)
		if j = h.sweepAndRead(j); j.State != provider.JobCompleted || j.Done != 250 {
			t.Errorf("after recovery: got %s, matched %d, done %d, want completed with 250 done",
				j.State, j.Matched, j.Done)
		}
	})
}

// The table throttles queries for jobs or for matches for an hour. A sweep retries a few times and leaves the rest to
// the next sweep. No instance is lost or processed twice, even in a batch that was matched before.
func TestR22_queriesThrottledForAnHour_eachInstanceIsProcessedOnce(t *testing.T) {
	t.Parallel()
	const many, sweeps = 250, 30 // a sweep every two minutes
	for query, throttles := range map[string]func(q *dynamodb.QueryInput, deleted int) bool{
		"list of instances, after the first batch": func(q *dynamodb.QueryInput, deleted int) bool {
			return deleted > 0 && aws.ToString(q.IndexName) == "byCreation" && aws.ToInt32(q.Limit) == 500
		},
		"list of jobs": func(q *dynamodb.QueryInput, _ int) bool {
			return text(q.ExpressionAttributeValues, ":sk") == "job#"
		},
		"each query": func(*dynamodb.QueryInput, int) bool { return true },
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
				j := h.startJob(purgeNothing)
				var mu sync.Mutex
				hour, throttled, jobWrites, deleted := true, 0, 0, map[string]int{}
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					mu.Lock()
					defer mu.Unlock()
					switch in := c.Input.(type) {
					case *dynamodb.QueryInput:
						if hour && throttles(in, len(deleted)) {
							throttled++
							return simaws.Throttled()
						}
					case *dynamodb.PutItemInput:
						if strings.HasPrefix(text(in.Item, "sk"), "job#") {
							jobWrites++
						}
					case *dynamodb.TransactWriteItemsInput:
						deleted[partitionKeyOf(c)]++
					}
					return next()
				})
				for range sweeps {
					j = h.sweepAndRead(j)
				}
				t.Logf("in an hour: %d throttled queries, %d writes of the job, %d deleted instances",
					throttled, jobWrites, len(deleted))
				if j.Ended() || j.Failed > 0 || j.Done != j.Matched || j.Done != int64(len(deleted)) ||
					len(j.Errors) > 1 {
					t.Errorf("after the hour: got %s, matched %d, done %d, failed %d, errors %v",
						j.State, j.Matched, j.Done, j.Failed, j.Errors)
				}
				if query != "each query" && throttled > sweeps*6 || jobWrites > sweeps+2 {
					t.Errorf("in %d sweeps: got %d throttled queries, %d writes of the job",
						sweeps, throttled, jobWrites)
				}
				hour = false
				if j = h.sweepAndRead(j); j.State != provider.JobCompleted || j.Matched != many || j.Done != many ||
					j.Failed+j.Skipped > 0 {
					t.Errorf("after recovery: got %s, matched %d, done %d, failed %d, errors %v",
						j.State, j.Matched, j.Done, j.Failed, j.Errors)
				}
				for key, n := range deleted {
					if n != 1 {
						t.Errorf("%s was deleted %d times, want 1", key, n)
					}
				}
				if len(deleted) != many {
					t.Errorf("got %d deleted instances, want %d", len(deleted), many)
				}
				h.wantInstances(0)
			})
		})
	}
}

// Without the permission to delete, each instance fails once, and the job ends and reports the error.
func TestR22_missingPermission_jobEndsWithErrors(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(250, func(i int) string { return fmt.Sprint("i-", i) })
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" {
				return errors.New("AccessDeniedException: not authorized to perform dynamodb:PutItem")
			}
			return next()
		})
		j := h.startJob(purgeNothing)
		for range 3 {
			j = h.sweepAndRead(j)
		}
		if j.State != provider.JobCompleted || j.Failed != 250 || j.Done != 0 || len(j.Errors) == 0 ||
			len(j.Errors) > 20 {
			t.Errorf("got job %+v, want completed with 250 failed and at most 20 errors", j)
		}
	})
}

// Two jobs match the same instances, two renewers sweep concurrently, and any call may fail. Each job counts each
// instance once.
func TestR22_twoJobsAndTwoRenewers_countEachInstanceOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		const many = 450
		h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
		jobs := []admin.Job{
			h.startJob(purgeNothing), h.startJob(admin.JobRequest{Operation: admin.OperationPurge, All: true}),
		}
		var calls atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			n := calls.Add(1)
			time.Sleep(time.Duration(n%7) * time.Millisecond)
			if n%23 == 0 { // spread the failures, because a page would not retry if all concurrent calls failed
				return &ddbtypes.ProvisionedThroughputExceededException{Message: aws.String("throttled")}
			}
			return next()
		})
		for range 20 {
			second := make(chan struct{})
			go func() {
				defer close(second)
				_, _ = h.Renewer.Sweep(h.t.Context())
			}()
			jobs[0] = h.sweepAndRead(jobs[0])
			<-second
		}
		jobs[1] = h.sweepAndRead(jobs[1])
		for _, j := range jobs {
			if j.State != provider.JobCompleted || j.Done != j.Matched || j.Matched > many || j.Failed+j.Skipped > 0 {
				t.Errorf("got %s, matched %d, done %d, failed %d, errors %v",
					j.State, j.Matched, j.Done, j.Failed, j.Errors)
			}
		}
		h.wantInstances(0)
	})
}
