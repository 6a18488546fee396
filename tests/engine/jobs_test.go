package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A job purges a hundred thousand of 110,000 instances, and its function crashes before or after random calls. The job
// ends with exact counts, and other instances are unchanged.
func TestJob_interruptedPurgeOfHundredThousandInstances_countsEachOnce(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const instances = 100_000
	var left atomic.Int64
	var crashing atomic.Bool
	random := rand.New(rand.NewPCG(1, 2))
	withFault(t, nothing(), func(_ context.Context, c simaws.Call, next func() error) error {
		if !crashing.Load() || c.Service != "DynamoDB" {
			return next()
		}
		switch n := left.Add(-1); {
		case n < 0:
			return simhub.ErrCrashed
		case n == 0:
			if err := next(); err != nil {
				return err
			}
			return simhub.ErrCrashed
		}
		return next()
	}, func(ctx context.Context, h *hub) {
		in := h.finished(ctx)
		h.copies(in, instances+instances/10, func(i int, it item) {
			at := in.CreatedAt.Add(time.Duration(i) * time.Millisecond)
			it["created"] = str(at.UTC().Format("2006-01-02T15:04:05.000Z") + fmt.Sprintf("#%08x", i))
			if i >= instances {
				it["name"] = str("other")
			}
		})
		time.Sleep(24 * time.Hour)
		b := admin.JobRequest{
			Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "nothing", StartedBefore: time.Now()},
		}
		before := h.Cloud.Capacity().Write
		ops := admin.New(h.Provider)
		p, err := ops.PreviewJob(ctx, b)
		if err != nil || p.Matched != instances+1 || !p.Complete || len(p.Sample) != 10 ||
			h.Cloud.Capacity().Write != before {
			t.Fatalf("dry run: got %+v, error %v, %v write units", p, err, h.Cloud.Capacity().Write-before)
		}
		j, err := ops.StartJob(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		late, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "late", Name: "nothing", Input: []byte("1"), StartID: "late",
		})
		if err != nil {
			t.Fatal(err)
		}
		h.ServeFor(ctx, time.Minute)
		polls := 0
		for ; !j.Ended(); polls++ {
			if polls == 1000 {
				t.Fatalf("after %d sweeps: got %+v", polls, j)
			}
			left.Store(int64(random.IntN(20_000)))
			crashing.Store(true)
			_, _ = h.Renewer.Sweep(ctx)
			crashing.Store(false)
			time.Sleep(2 * time.Minute)
			if j, err = ops.Job(ctx, j.ID); err != nil {
				t.Fatal(err)
			}
		}
		if j.State != provider.JobCompleted || j.Matched != instances+1 || j.Done != j.Matched ||
			j.Skipped+j.Failed != 0 {
			t.Errorf("got state %s: matched %d, done %d, skipped %d, failed %d, %v", j.State, j.Matched, j.Done,
				j.Skipped, j.Failed, j.Errors)
		}
		t.Logf("%d of %d instances in %d sweeps, nearly all of which crashed", j.Done, instances+instances/10+1, polls)
		for i := 0; i < instances+instances/10; i += 97 {
			_, err := h.Provider.ReadInstance(ctx, fmt.Sprintf("copy-%07d", i))
			if gone := errors.Is(err, provider.ErrNotFound); gone != (i < instances) {
				t.Fatalf("copy %d: got error %v", i, err)
			}
		}
		if _, err := h.Provider.ReadInstance(ctx, late.InstanceID); err != nil {
			t.Errorf("instance started after the job: got error %v", err)
		}
		if p, err := ops.PreviewJob(ctx, b); err != nil || p.Matched != 0 {
			t.Errorf("got %d remaining instances, error %v", p.Matched, err)
		}
	})
}
