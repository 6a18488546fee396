package dynamo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// locking runs f on a hub whose default queue locks for the given time, in virtual time.
func locking(
	t *testing.T, lock time.Duration, intercept simaws.Interceptor,
	f func(ctx context.Context, p provider.Poller, put func(delay time.Duration)),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hub, err := simhub.New(simhub.Options{
			Registry: perdure.NewRegistry(), WorkVisibility: lock, Intercept: intercept,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer hub.Close()
		f(t.Context(), hub.Provider, func(delay time.Duration) {
			at := time.Now().Add(delay)
			w := provider.WorkItem{
				V: provider.WireVersion, InstanceID: "a", ExecutionID: "x", ActivityID: 3, Name: "n", Queue: "default",
				Attempt: 1, NotBefore: &at,
			}
			if err := hub.Provider.PutWorkItems(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// The queue locks a record at an unknown time after the start of the call. If a late response made the hold outlast the
// lock, another consumer would receive the record, and both would report its outcome.
func TestFetchRecords_responseIsLate_holdDoesNotOutlastTheLock(t *testing.T) {
	t.Parallel()
	late := func(_ context.Context, c simaws.Call, next func() error) error {
		err := next()
		if c.Operation == "ReceiveMessage" || c.Operation == "ChangeMessageVisibilityBatch" {
			time.Sleep(20 * time.Second)
		}
		return err
	}
	locking(t, time.Minute, late, func(ctx context.Context, p provider.Poller, put func(time.Duration)) {
		put(0)
		locked := time.Now()
		records, err := p.FetchRecords(ctx, "default")
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		if until := records[0].LockedUntil(); until.After(locked.Add(time.Minute)) {
			t.Errorf("lock ends %v after a fetch with a lock of a minute", until.Sub(locked))
		}
		locked = time.Now()
		if lost, err := p.RenewRecords(ctx, "default", time.Minute, records...); err != nil || len(lost) > 0 {
			t.Fatal(lost, err)
		}
		if until := records[0].LockedUntil(); until.After(locked.Add(time.Minute)) {
			t.Errorf("lock ends %v after a renewal for a minute", until.Sub(locked))
		}
	})
}

// Most of the hold is left even after the longest wait of a fetch.
func TestFetchRecords_longPoll_leavesMostOfTheHold(t *testing.T) {
	t.Parallel()
	for _, lock := range []time.Duration{3 * time.Second, 30 * time.Second, 90 * time.Second, 15 * time.Minute} {
		locking(t, lock, nil, func(ctx context.Context, p provider.Poller, put func(time.Duration)) {
			wait := min(20*time.Second, lock/3)
			put(wait - time.Second)
			records, err := p.FetchRecords(ctx, "default")
			if err != nil || len(records) != 1 {
				t.Fatalf("lock of %v: %d records, error %v", lock, len(records), err)
			}
			if left := time.Until(records[0].LockedUntil()); left < lock*2/3 {
				t.Errorf("lock of %v: %v are left", lock, left)
			}
			began := time.Now()
			if records, err := p.FetchRecords(ctx, "default"); err != nil || len(records) > 0 ||
				time.Since(began) != wait {
				t.Errorf("lock of %v: %d records, error %v, after %v", lock, len(records), err, time.Since(began))
			}
		})
	}
}

func TestFetchRecords_severalFetches_readTheQueueSettingOnce(t *testing.T) {
	t.Parallel()
	var requested, fetched int
	count := func(_ context.Context, c simaws.Call, next func() error) error {
		switch in := c.Input.(type) {
		case *sqs.GetQueueAttributesInput:
			requested++
		case *sqs.ReceiveMessageInput:
			fetched++
			if in.VisibilityTimeout != 60 || in.MaxNumberOfMessages != 10 || in.WaitTimeSeconds != 20 {
				t.Errorf("receive of %d messages with a timeout of %d s and a wait of %d s",
					in.MaxNumberOfMessages, in.VisibilityTimeout, in.WaitTimeSeconds)
			}
		}
		return next()
	}
	locking(t, time.Minute, count, func(ctx context.Context, p provider.Poller, _ func(time.Duration)) {
		for range 3 {
			if _, err := p.FetchRecords(ctx, "default"); err != nil {
				t.Fatal(err)
			}
		}
		if requested != 1 || fetched != 3 {
			t.Errorf("%d reads of the setting, %d fetches", requested, fetched)
		}
	})
}
