package admin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func TestBulk_hundredJobsRun_nextIsRefused(t *testing.T) {
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
