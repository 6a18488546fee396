package admin_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// there returns the instances of the restored table, and the activities that have completed or failed.
func (h *lost) there() (instances []client.Status, settled map[string]bool) {
	h.t.Helper()
	instances, err := client.Collect(h.List(h.ctx, client.ListQuery{}))
	if err != nil {
		h.t.Fatal(err)
	}
	settled = map[string]bool{}
	for _, in := range instances {
		for x, err := range h.Provider.ListExecutions(h.ctx, in.InstanceID) {
			if err != nil {
				break // a purge is deleting the instance
			}
			scheduled := map[int64]bool{}
			for e, err := range h.Provider.ReadHistory(h.ctx, in.InstanceID, x.ExecutionID, 0) {
				if err != nil {
					break
				}
				scheduled[e.ID] = e.Kind == history.ActivityScheduled
				if done := e.Kind == history.ActivityCompleted ||
					e.Kind == history.ActivityFailed; done && scheduled[e.SourceEventID] {
					settled[fmt.Sprintf("%s #%d", x.ExecutionID, e.SourceEventID)] = true
				}
			}
		}
	}
	return instances, settled
}

// finish runs the hub and its sweeper until all instances must have ended.
// finish first raises again the events for which instances wait, as clients do.
func (h *lost) finish(instances []client.Status) {
	h.t.Helper()
	for _, in := range instances {
		switch kind := in.Orchestration; {
		case in.Status.Terminal() || in.Status == client.StatusDeleting:
		case kind == "event" || kind == "event-early":
			if err := h.RaiseEvent(h.ctx, in.InstanceID, "e", 1, client.WithEventID("again")); err != nil &&
				!errors.Is(err, client.ErrEnded) {
				h.t.Error(err)
			}
		default:
		}
	}
	for range 20 {
		h.ServeFor(h.ctx, 15*time.Minute)
		if _, err := h.Renewer.Sweep(h.ctx); err != nil {
			h.t.Error(err)
		}
	}
}

// check verifies that no instance is lost and that no settled activity ran again.
func (h *lost) check(before []client.Status, settled map[string]bool) {
	h.t.Helper()
	if err := h.CheckIdle(h.ctx); err != nil {
		h.t.Error(err)
	}
	for _, in := range before {
		s, err := h.Status(h.ctx, in.InstanceID)
		switch {
		case in.Status == client.StatusDeleting:
			if !errors.Is(err, client.ErrNotFound) {
				h.t.Errorf("instance %s was being purged and is %s, error %v", in.InstanceID, s.Status, err)
			}
		case err != nil:
			h.t.Errorf("status of instance %s: got error %v", in.InstanceID, err)
		case in.Orchestration == "forever":
			if s.Status != client.StatusCancelled {
				h.t.Errorf("instance %s is %s after its parent has ended; want cancelled", in.InstanceID, s.Status)
			}
		case s.Status == client.StatusTerminated && in.Orchestration == "terminated",
			s.Status == client.StatusCancelled && in.Orchestration == "saga-cancelled":
		case s.Status != client.StatusCompleted || string(s.Output) != "1":
			h.t.Errorf("instance %s was %s, and now is %s with output %s, failure %v",
				in.InstanceID, in.Status, s.Status, s.Output, s.Failure)
		}
		h.checkUnreferenced(in)
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	again := 0
	for activity := range h.runs {
		if settled[activity] {
			again++
		}
	}
	if again > 0 {
		h.t.Errorf("got %d repeated runs of %d settled activities", again, len(settled))
	}
}

// checkUnreferenced verifies that the detached instances that an instance has started are completed.
func (h *lost) checkUnreferenced(in client.Status) {
	h.t.Helper()
	var loose []string
	switch in.Orchestration {
	case "detaches":
		loose = []string{"loose-of-" + in.InstanceID}
	case "eternal":
		for n := range 7 {
			loose = append(loose, fmt.Sprintf("loose-%d-of-%s", n, in.InstanceID))
		}
	}
	for _, id := range loose {
		if s, err := h.Status(h.ctx, id); err != nil || s.Status != client.StatusCompleted {
			h.t.Errorf("instance %s, started by %s: got status %s, error %v, want completed",
				id, in.InstanceID, s.Status, err)
		}
	}
}
