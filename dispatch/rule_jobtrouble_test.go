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

// putItem writes an item as it is.
func (h *hub) putItem(it map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	if _, err := h.Cloud.Table.PutItem(h.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: it}); err != nil {
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

// completed starts instances that are over a minute later.
func (h *hub) completed(n int, id func(i int) string) {
	h.t.Helper()
	for i := range n {
		h.begin(id(i), "nothing", 0)
	}
	h.serveFor(time.Minute)
}

// bulk begins a job.
func (h *hub) bulk(b admin.JobRequest) admin.Job {
	h.t.Helper()
	j, err := admin.New(h.Provider).StartJob(h.t.Context(), b)
	if err != nil {
		h.t.Fatal(err)
	}
	return j
}

// look lets the renewer look, whatever comes of it, and reads how a job stands two minutes later.
func (h *hub) look(j admin.Job) admin.Job {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), time.Minute)
	defer stop()
	_, _ = h.Timekeeper.Sweep(ctx)
	time.Sleep(2 * time.Minute)
	now, err := admin.New(h.Provider).Job(h.t.Context(), j.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return now
}

// keyOf is the partition key of the item that a call is about.
func keyOf(c simaws.Call) string {
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

// A time that nothing can have started at selects nothing: DynamoDB refuses to look there, so that the job would never end. It is refused at once; one
// that was begun all the same ends.
func TestR22AJobWhoseTimesLeaveNothingEnds(t *testing.T) {
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
				t.Errorf("%v", err)
			}
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		j := provider.Job{ID: "J", Operation: provider.OperationPurge, Filter: b.Filter, State: provider.JobRunning, CreatedAt: now, UpdatedAt: now}
		j.Filter.StartedBefore = now
		if err := h.Provider.PutJob(ctx, &j); err != nil {
			t.Fatal(err)
		}
		if j = h.look(j); j.State != provider.JobCompleted || j.Matched != 0 {
			t.Errorf("%+v", j)
		}
	})
}

// The edges of a filter: from a time on, up to a time, ended before a time.
func TestR22AFilterIsExactAtItsEdges(t *testing.T) {
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
			"started after":         {admin.Filter{StartedAfter: instances[2].CreatedAt}, 3},
			"started before":        {admin.Filter{StartedBefore: instances[2].CreatedAt}, 2},
			"between":               {admin.Filter{StartedAfter: instances[1].CreatedAt, StartedBefore: instances[3].CreatedAt}, 2},
			"a millisecond":         {admin.Filter{StartedAfter: instances[1].CreatedAt, StartedBefore: instances[1].CreatedAt.Add(time.Millisecond)}, 1},
			"before all":            {admin.Filter{StartedBefore: begun}, 0},
			"ended before":          {admin.Filter{UpdatedBefore: h.read(instances[2]).UpdatedAt}, 2},
			"ended before, or then": {admin.Filter{UpdatedBefore: h.read(instances[2]).UpdatedAt.Add(time.Millisecond)}, 3},
		} {
			p, err := ops.PreviewJob(ctx, admin.JobRequest{Operation: admin.OperationPurge, Filter: want.f})
			if err != nil || p.Matched != want.n || !p.Complete {
				t.Errorf("%s: %+v, %v, want %d", name, p, err, want.n)
			}
		}
	})
}

// When the watch looks next at an instance that is pending is nobody's business: it was last changed when it was started.
func TestR22WhatIsPendingForLongIsOld(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "stuck")
		time.Sleep(40 * days)
		h.watch()
		b := admin.JobRequest{Operation: admin.OperationPurge, Force: true, Filter: admin.Filter{UpdatedBefore: time.Now().Add(-30 * days)}}
		if p, err := admin.New(h.Provider).PreviewJob(ctx, b); err != nil || p.Matched != 1 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// A match reads 20 pages of 500 instances at the most. The job goes on behind 21,000 that it does not select: one of
// its matches finds none, wherever it begins.
func TestR22_pagesWithoutAMatch_jobGoesOn(t *testing.T) {
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

		j := h.look(h.bulk(purgeNothing))
		if j.State != provider.JobCompleted || j.Matched != selected || j.Done != selected {
			t.Errorf("%+v", j)
		}
		for n := range others { // they have no histories to check
			h.deleteItem(key(n), "i")
		}
	})
}

// An instance whose item cannot be read is one that has failed, and the job goes on behind it. It is listed, too.
func TestR22AJobGoesOnBehindAnInstanceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const many = 250
		h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
		for _, id := range []string{"i-0", "i-100"} {
			it := h.item("i#"+id, "i")
			it["tags"] = textValue("{")
			h.putItem(it)
		}
		if page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Limit: 1000}); err != nil || len(page.Instances) != many {
			t.Errorf("%d are listed, %v", len(page.Instances), err)
		}
		p, err := admin.New(h.Provider).PreviewJob(ctx, purgeNothing)
		if err != nil || p.Matched != many {
			t.Errorf("a dry run: %+v, %v", p, err)
		}
		if j := h.look(h.bulk(purgeNothing)); j.State != provider.JobCompleted || j.Matched != many || j.Done != many-2 || j.Failed != 2 || len(j.Errors) != 2 {
			t.Errorf("%+v", j)
		}
	})
}

// A job that cannot be read, as one of a later release, holds up no other, and nobody who lists them or begins one.
func TestR22AJobThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.completed(3, func(i int) string { return fmt.Sprint("i-", i) })
		h.putItem(map[string]ddbtypes.AttributeValue{"pk": textValue("hub"), "sk": textValue("job#7ZZZ"), "job": textValue(`{"state":7}`)})
		narrower := `{"id":"7ZZY","operation":"purge","filter":{"startedBefore":"2100-01-01T00:00:00Z","statuses":["Completed"],"colour":"red"},"force":true,"state":"Running"}`
		h.putItem(map[string]ddbtypes.AttributeValue{"pk": textValue("hub"), "sk": textValue("job#7ZZY"), "job": textValue(narrower)}) // the whole of it would be purged
		j := h.look(h.bulk(purgeNothing))
		if j.State != provider.JobCompleted || j.Done != 3 {
			t.Errorf("%+v", j)
		}
		if all, err := client.Collect(admin.New(h.Provider).Jobs(ctx)); err != nil || len(all) != 1 {
			t.Errorf("%d jobs, %v", len(all), err)
		}
	})
}

// A batch of the longest ids there may be, of what JSON escapes at length, fits the job's item.
func TestR22ABatchOfTheLongestIDsFitsTheJob(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, of := range []string{"<", `"`, "\u2028"} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			h.completed(250, func(i int) string {
				tail := fmt.Sprintf("%04d", i)
				return strings.Repeat(of, (provider.MaxInstanceIDBytes-len(tail))/len(of)) + tail
			})
			if j := h.look(h.bulk(purgeNothing)); j.State != provider.JobCompleted || j.Done != 250 {
				t.Errorf("%q: %s, matched %d, done %d, %.300v", of, j.State, j.Matched, j.Done, j.Errors)
			}
		})
	}
}

// An instance with which each call takes longer than there is time ends as failed, and holds up neither the others of its batch, nor its job, nor another.
func TestR22WhatTakesTooLongHoldsUpNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		const slow = 150
		h.completed(300, func(i int) string { return fmt.Sprint([]string{"slow-", "i-"}[i%2], i) })
		h.begin("alive", "sums", 0)
		h.serveFor(time.Minute)
		other := h.bulk(admin.JobRequest{Operation: admin.OperationCancel, Filter: admin.Filter{Orchestration: "sums"}})
		time.Sleep(time.Second)
		j := h.bulk(purgeNothing) // the newest is the first
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" && strings.HasPrefix(keyOf(c), "i#slow-") {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		})
		if other = h.look(other); other.State != provider.JobCompleted || other.Done != 1 {
			t.Errorf("the other: %+v", other)
		}
		looks := 1
		for ; !j.Ended() && looks < 60; looks++ {
			j = h.look(j)
		}
		if j.State != provider.JobCompleted || j.Matched != 300 || j.Done != 300-slow || j.Failed != slow || !strings.Contains(fmt.Sprint(j.Errors), "time limit of the job step") {
			t.Errorf("%s, matched %d, done %d, failed %d, %v", j.State, j.Matched, j.Done, j.Failed, j.Errors)
		}
		t.Logf("it ended after %d looks", looks)
	})
}

func TestR22_instanceFailsAgainAndAgain_isTriedInFiveSteps(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(2, func(i int) string { return fmt.Sprint("i-", i) })
		j := h.bulk(purgeNothing)
		var mu sync.Mutex
		tried, steps := false, 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			mu.Lock()
			defer mu.Unlock()
			if c.Operation == "TransactWriteItems" && keyOf(c) == "i#i-0" {
				tried = true
				return simaws.Throttled()
			}
			if in, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(in.Item, "sk"), "job#") && tried {
				tried, steps = false, steps+1
			}
			return next()
		})
		for range 10 {
			j = h.look(j)
		}
		if j.State != provider.JobCompleted || j.Done != 1 || j.Failed != 1 || steps != 5 {
			t.Errorf("%s after %d steps: done %d, failed %d, %v", j.State, steps, j.Done, j.Failed, j.Errors)
		}
	})
}

// What was done counts though nothing more can be matched for an hour: an index that was not there, say, or a right. The job says what is wrong, and goes on.
func TestR22AJobThatCannotMatchSaysSoAndKeepsItsCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(250, func(i int) string { return fmt.Sprint("i-", i) })
		j := h.bulk(purgeNothing)
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
			j = h.look(j)
		}
		if j.Ended() || j.Done == 0 || j.Done != j.Matched || len(j.Errors) != 1 || writes.Load() != j.Done {
			t.Errorf("%s, matched %d, done %d with %d deletions, %v", j.State, j.Matched, j.Done, writes.Load(), j.Errors)
		}
		h.interfere(nil)
		if j = h.look(j); j.State != provider.JobCompleted || j.Done != 250 {
			t.Errorf("%s, matched %d, done %d", j.State, j.Matched, j.Done)
		}
	})
}

// The table throttles every look at its jobs, or at what they match, for an hour. A look of the watch asks a few times and leaves it to the next: nothing
// is lost, and nothing done twice, of a batch that was matched before either.
func TestR22AnHourOfThrottlingLosesNothingOfAJobAndMultipliesNothing(t *testing.T) {
	t.Parallel()
	const many, looks = 250, 30 // two minutes apart
	for what, throttles := range map[string]func(q *dynamodb.QueryInput, deleted int) bool{
		"its list, once a batch is done": func(q *dynamodb.QueryInput, deleted int) bool {
			return deleted > 0 && aws.ToString(q.IndexName) == "byCreation" && aws.ToInt32(q.Limit) == 500
		},
		"the jobs": func(q *dynamodb.QueryInput, _ int) bool {
			return strings.Contains(aws.ToString(q.KeyConditionExpression), ":jobs")
		},
		"each query": func(*dynamodb.QueryInput, int) bool { return true },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
				j := h.bulk(purgeNothing)
				var mu sync.Mutex
				hour, asked, notes, deleted := true, 0, 0, map[string]int{}
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					mu.Lock()
					defer mu.Unlock()
					switch in := c.Input.(type) {
					case *dynamodb.QueryInput:
						if hour && throttles(in, len(deleted)) {
							asked++
							return simaws.Throttled()
						}
					case *dynamodb.PutItemInput:
						if strings.HasPrefix(text(in.Item, "sk"), "job#") {
							notes++
						}
					case *dynamodb.TransactWriteItemsInput:
						deleted[keyOf(c)]++
					}
					return next()
				})
				for range looks {
					j = h.look(j)
				}
				t.Logf("in an hour: %d queries throttled, %d notes of the job, %d instances deleted", asked, notes, len(deleted))
				if j.Ended() || j.Failed > 0 || j.Done != j.Matched || j.Done != int64(len(deleted)) || len(j.Errors) > 1 {
					t.Errorf("after the hour: %s, matched %d, done %d, failed %d, %v", j.State, j.Matched, j.Done, j.Failed, j.Errors)
				}
				if what != "each query" && asked > looks*6 || notes > looks+2 {
					t.Errorf("in %d looks: %d queries throttled, %d notes of the job", looks, asked, notes)
				}
				hour = false
				if j = h.look(j); j.State != provider.JobCompleted || j.Matched != many || j.Done != many || j.Failed+j.Skipped > 0 {
					t.Errorf("in the end: %s, matched %d, done %d, failed %d, %v", j.State, j.Matched, j.Done, j.Failed, j.Errors)
				}
				for key, n := range deleted {
					if n != 1 {
						t.Errorf("%s was deleted %d times", key, n)
					}
				}
				if len(deleted) != many {
					t.Errorf("%d instances were deleted", len(deleted))
				}
				h.wantInstances(0)
			})
		})
	}
}

// Without the right to delete, each instance fails, once, and the job ends and says so.
func TestR22AJobWithoutTheRightEndsAndSaysSo(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.completed(250, func(i int) string { return fmt.Sprint("i-", i) })
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" {
				return errors.New("AccessDeniedException: not authorized to perform dynamodb:PutItem")
			}
			return next()
		})
		j := h.bulk(purgeNothing)
		for range 3 {
			j = h.look(j)
		}
		if j.State != provider.JobCompleted || j.Failed != 250 || j.Done != 0 || len(j.Errors) == 0 || len(j.Errors) > 20 {
			t.Errorf("%+v", j)
		}
	})
}

// Two jobs that match the same, two renewers that look at once, and each call that may fail: each job counts each instance once.
func TestR22TwoJobsAndTwoRenewersAtOnceCountExactly(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		const many = 450
		h.completed(many, func(i int) string { return fmt.Sprint("i-", i) })
		jobs := []admin.Job{h.bulk(purgeNothing), h.bulk(admin.JobRequest{Operation: admin.OperationPurge, All: true})}
		var calls atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			n := calls.Add(1)
			time.Sleep(time.Duration(n%7) * time.Millisecond)
			if n%23 == 0 { // each by its own number: all that are made at once would be more than a list repeats
				return &ddbtypes.ProvisionedThroughputExceededException{Message: aws.String("throttled")}
			}
			return next()
		})
		for range 20 {
			second := make(chan struct{})
			go func() {
				defer close(second)
				_, _ = h.Timekeeper.Sweep(h.t.Context())
			}()
			jobs[0] = h.look(jobs[0])
			<-second
		}
		jobs[1] = h.look(jobs[1])
		for _, j := range jobs {
			if j.State != provider.JobCompleted || j.Done != j.Matched || j.Matched > many || j.Failed+j.Skipped > 0 {
				t.Errorf("%s, matched %d, done %d, failed %d, %v", j.State, j.Matched, j.Done, j.Failed, j.Errors)
			}
		}
		h.wantInstances(0)
	})
}
