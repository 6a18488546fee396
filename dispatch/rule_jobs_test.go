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

// Jobs that cancel, terminate and purge: each deals with what it matched, and with nothing else.
func TestR22JobsDealWithWhatTheyMatch(t *testing.T) {
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
				t.Fatalf("%+v, %v", j, err)
			}
			return j
		}
		filter := admin.Filter{Orchestration: "sums", StartedBefore: time.Now()}
		if j := run(admin.JobRequest{Operation: admin.OperationCancel, Filter: filter, Message: "enough"}); j.Matched != 30 || j.Done != 30 {
			t.Errorf("cancel: %+v", j)
		}
		if s, err := cl.Status(ctx, "sums-7"); err != nil || s.Status != client.StatusCancelled || s.Failure.Message != "enough" {
			t.Errorf("cancelled: %+v, %v", s, err)
		}
		if j := run(admin.JobRequest{Operation: admin.OperationTerminate, Filter: admin.Filter{Orchestration: "sums"}}); j.Matched != 1 {
			t.Errorf("terminate: %+v", j)
		}
		if s, err := cl.Status(ctx, "late-cancel"); err != nil || s.Status != client.StatusTerminated {
			t.Errorf("terminated: %+v, %v", s, err)
		}
		if j := run(admin.JobRequest{Operation: admin.OperationPurge, All: true}); j.Matched != 61 || j.Done != 61 {
			t.Errorf("purge: %+v", j)
		}
		if s, err := cl.Status(ctx, "late-terminate"); err != nil || s.Status != client.StatusRunning {
			t.Errorf("what is not over: %+v, %v", s, err)
		}
	})
}

// Interleaving: what a job has matched is purged by somebody else, and its id started anew, before the job comes to it. It is cancelled while
// it is under way: it does nothing more.
func TestR22AJobLetsAnotherLifeBeAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		ops := admin.New(h.Provider)
		old := h.begin("a", "sums", 0)
		h.serveFor(time.Minute)
		j, err := ops.StartJob(ctx, admin.JobRequest{Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "sums"}, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		j.Batch, j.Matched, j.MatchingDone = []provider.Target{{InstanceID: "a", CreatedAt: old.CreatedAt}}, 1, true
		if err := h.Provider.PutJob(ctx, &j); err != nil {
			t.Fatal(err)
		}
		h.purge("a")
		if _, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "a", Name: "sums", Input: encoded(t, 0), StartID: "another"}); err != nil {
			t.Fatal(err)
		}
		h.watch()
		if j, err = ops.Job(ctx, j.ID); err != nil || j.State != provider.JobCompleted || j.Done != 1 {
			t.Errorf("%+v, %v", j, err)
		}
		if now := h.read(old); now.StartID != "another" {
			t.Errorf("the new life is %+v", now)
		}
		if err := h.Provider.DeleteIncarnation(ctx, "a", old.StartID, true); err != nil || h.read(old).Status.Terminal() {
			t.Errorf("the new life was deleted for the old one: %v", err)
		}
		time.Sleep(time.Second)
		j, err = ops.StartJob(ctx, admin.JobRequest{Operation: admin.OperationPurge, All: true, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if j, err = ops.CancelJob(ctx, j.ID); err != nil || j.State != provider.JobCancelled {
			t.Errorf("%+v, %v", j, err)
		}
		h.watch()
		if now := h.read(old); now.Status.Terminal() {
			t.Error("a job that is cancelled goes on")
		}
		if _, err := ops.CancelJob(ctx, "nobody"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("no job: %v", err)
		}
		if all, err := client.Collect(ops.Jobs(ctx)); err != nil || len(all) != 2 || all[0].ID != j.ID {
			t.Errorf("jobs %+v, %v", all, err)
		}
	})
}
