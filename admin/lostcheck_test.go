package admin_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// there is what the restored table has: the instances, and the activities that are settled.
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
				break // it is being deleted
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

// finish lets the hub run until all must be over, with the watch, and with what clients do again.
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
		if _, err := h.Timekeeper.Sweep(h.ctx); err != nil {
			h.t.Error(err)
		}
	}
}

// check holds the hub to what was promised: none is lost, nothing settled ran again.
func (h *lost) check(before []client.Status, settled map[string]bool) {
	h.t.Helper()
	if err := h.CheckRest(h.ctx); err != nil {
		h.t.Error(err)
	}
	for _, in := range before {
		s, err := h.Status(h.ctx, in.InstanceID)
		switch {
		case in.Status == client.StatusDeleting:
			if !errors.Is(err, client.ErrNotFound) {
				h.t.Errorf("%s was being purged, and is %s, %v", in.InstanceID, s.Status, err)
			}
		case err != nil:
			h.t.Errorf("%s: %v", in.InstanceID, err)
		case in.Orchestration == "forever":
			if s.Status != client.StatusCancelled {
				h.t.Errorf("%s, whose parent has left it, is %s", in.InstanceID, s.Status)
			}
		case s.Status == client.StatusTerminated && in.Orchestration == "terminated",
			s.Status == client.StatusCancelled && in.Orchestration == "saga-cancelled":
		case s.Status != client.StatusCompleted || string(s.Output) != "1":
			h.t.Errorf("%s, which was %s, is %s with %s %v", in.InstanceID, in.Status, s.Status, s.Output, s.Failure)
		}
		h.checkLoose(in)
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
		h.t.Errorf("%d of %d settled activities ran again", again, len(settled))
	}
}

// checkLoose looks for what an instance has started and not waited for.
func (h *lost) checkLoose(in client.Status) {
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
			h.t.Errorf("%s, which %s has started, is %s, %v", id, in.InstanceID, s.Status, err)
		}
	}
}
