package admin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func TestBulk_hundredJobsRun_nextIsRejected(t *testing.T) {
	t.Parallel()
	c := admin.New(fakeprovider.New(func() time.Time {
		return began
	}, "hello"), admin.WithClock(func() time.Time { return began }))
	b := admin.JobRequest{Operation: admin.OperationCancel, All: true}
	var running admin.Job
	for i := range 100 {
		var err error
		if running, err = c.StartJob(t.Context(), b); err != nil {
			t.Fatalf("start job %d: got error %v", i, err)
		}
	}
	_, err := c.StartJob(t.Context(), b)
	if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != "operation" {
		t.Errorf("start job 101: error %v; want a FieldError for operation", err)
	}

	if _, err := c.CancelJob(t.Context(), running.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartJob(t.Context(), b); err != nil {
		t.Errorf("start a job after one job was cancelled: got error %v", err)
	}
}

// Calls with the same key return the job of the first one, also after the job has ended.
func TestStartJob_repeatedKey_returnsFirstJob(t *testing.T) {
	t.Parallel()
	c := admin.New(fakeprovider.New(func() time.Time {
		return began
	}, "hello"), admin.WithClock(func() time.Time { return began }))
	start := func(key string, operation provider.Operation) admin.Job {
		t.Helper()
		j, err := c.StartJob(t.Context(), admin.JobRequest{Operation: operation, All: true}, admin.WithJobKey(key))
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	first := start("k", admin.OperationCancel)
	if again := start("k", admin.OperationPurge); again.ID != first.ID || again.Operation != admin.OperationCancel {
		t.Errorf("a repeated call started %+v", again)
	}
	if other := start("l", admin.OperationCancel); other.ID == first.ID {
		t.Error("another key returned the same job")
	}
	if _, err := c.CancelJob(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if again := start("k", admin.OperationCancel); again.ID != first.ID || again.State != provider.JobCancelled {
		t.Errorf("after its end, a repeated call returned %+v", again)
	}
	for _, key := range []string{"", "a\x00"} {
		_, err := c.StartJob(t.Context(), admin.JobRequest{Operation: admin.OperationCancel, All: true},
			admin.WithJobKey(key))
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != "key" {
			t.Errorf("%q: error %v", key, err)
		}
	}
}
