package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Jobs cancel, terminate and purge exactly the instances that they match.
func TestR22_jobs_affectOnlyMatchedInstances(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		cl, ops := client.New(h.Provider), admin.New(h.Provider)
		for i := range 30 {
			h.begin(fmt.Sprintf("sums-%d", i), "sums", 0)
			h.begin(fmt.Sprintf("over-%d", i), "nothing", 0)
		}
		h.serveFor(time.Minute)
		run := func(b admin.JobRequest) admin.Job {
			t.Helper()
			j, err := ops.StartJob(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			h.begin("late-"+string(b.Operation), "sums", 0)
			h.watch()
			h.serveFor(time.Minute)
			if j, err = ops.Job(ctx, j.ID); err != nil || !j.Ended() {
				t.Fatalf("got job %+v, error %v, want an ended job", j, err)
			}
			return j
		}
		filter := admin.Filter{Orchestration: "sums", StartedBefore: time.Now()}
		if j := run(admin.JobRequest{
			Operation: admin.OperationCancel, Filter: filter,
			Message: "enough",
		}); j.Matched != 30 || j.Done != 30 {
			t.Errorf("cancel job: got %+v, want 30 matched and done", j)
		}
		if s, err := cl.Status(ctx, "sums-7"); err != nil || s.Status != client.StatusCancelled ||
			s.Failure.Message != "enough" {
			t.Errorf("sums-7: got %+v, error %v, want cancelled by the job", s, err)
		}
		if j := run(admin.JobRequest{
			Operation: admin.OperationTerminate,
			Filter:    admin.Filter{Orchestration: "sums"},
		}); j.Matched != 1 {
			t.Errorf("terminate job: got %+v, want 1 matched", j)
		}
		if s, err := cl.Status(ctx, "late-cancel"); err != nil || s.Status != client.StatusTerminated {
			t.Errorf("late-cancel: got %+v, error %v, want terminated", s, err)
		}
		if j := run(admin.JobRequest{Operation: admin.OperationPurge, All: true}); j.Matched != 61 || j.Done != 61 {
			t.Errorf("purge job: got %+v, want 61 matched and done", j)
		}
		if s, err := cl.Status(ctx, "late-terminate"); err != nil || s.Status != client.StatusRunning {
			t.Errorf("late-terminate: got %+v, error %v, want still running", s, err)
		}
	})
}

// Interleaving:
//  1. A job matches an instance.
//  2. A client purges the instance and starts its ID again before the job processes the match. The job skips the new
//     incarnation.
//  3. A second job is cancelled while it is running. The sweeper does no more work for this job.
func TestR22_newIncarnationOrCancelledJob_jobDeletesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		ops := admin.New(h.Provider)
		old := h.begin("a", "sums", 0)
		h.serveFor(time.Minute)
		j, err := ops.StartJob(ctx, admin.JobRequest{
			Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "sums"}, Force: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		j.Batch, j.Matched, j.MatchingDone = []provider.Target{{InstanceID: "a", CreatedAt: old.CreatedAt}}, 1, true
		if err := h.Provider.PutJob(ctx, &j); err != nil {
			t.Fatal(err)
		}
		h.purge("a")
		if _, err := h.Provider.StartOrchestration(ctx,
			provider.Start{InstanceID: "a", Name: "sums", Input: encoded(t, 0), StartID: "another"}); err != nil {
			t.Fatal(err)
		}
		h.watch()
		if j, err = ops.Job(ctx, j.ID); err != nil || j.State != provider.JobCompleted || j.Done != 1 {
			t.Errorf("got job %+v, error %v, want completed with 1 done", j, err)
		}
		if now := h.read(old); now.StartID != "another" {
			t.Errorf("got %+v, want the new incarnation", now)
		}
		if err := h.Provider.DeleteIncarnation(ctx, "a", old.StartID, true); err != nil ||
			h.read(old).Status.Terminal() {
			t.Errorf("DeleteIncarnation of the old incarnation deleted the new one: %v", err)
		}
		time.Sleep(time.Second)
		j, err = ops.StartJob(ctx, admin.JobRequest{Operation: admin.OperationPurge, All: true, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if j, err = ops.CancelJob(ctx, j.ID); err != nil || j.State != provider.JobCancelled {
			t.Errorf("got job %+v, error %v, want cancelled", j, err)
		}
		h.watch()
		if now := h.read(old); now.Status.Terminal() {
			t.Error("a cancelled job still deletes instances")
		}
		if _, err := ops.CancelJob(ctx, "missing"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("CancelJob of an unknown job: got error %v, want ErrNotFound", err)
		}
		if all, err := client.Collect(ops.Jobs(ctx)); err != nil || len(all) != 2 || all[0].ID != j.ID {
			t.Errorf("got jobs %+v, error %v, want 2 jobs, the newest first", all, err)
		}
	})
}
