package simhub

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
)

// Deploy makes the functions run the code of another build from now on, like a deployment. Running invocations end with
// the code with which they started. Deploy wakes instances that were blocked in an earlier build. Do not invoke
// functions during the call.
func (h *Hub) Deploy(ctx context.Context, r *perdure.Registry, build string) error {
	h.options.Registry, h.options.BuildID = r, build
	for _, queue := range h.workQueues() {
		h.addWorkQueue(queue)
	}

	h.Cloud.Unmap()
	h.retired = append(h.retired, h.Orchestrators...)
	h.Orchestrators = nil
	if err := h.mapFunctions(h.Provider.Config()); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	if err := h.announce(ctx); err != nil {
		return err
	}
	if _, err := h.Renewer.Sweep(ctx); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	return nil
}

// AddQueue adds a work queue with a worker, unless it exists. Do not invoke functions during the call.
func (h *Hub) AddQueue(name string) error {
	if !h.addWorkQueue(name) {
		return nil
	}
	h.added = append(h.added, name)
	if err := h.joinWorkers(h.Provider.Config(), name); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	return nil
}

// addWorkQueue creates a work queue with its dead-letter queue, unless it exists. The provider shares the maps and uses
// the queue from then on.
func (h *Hub) addWorkQueue(name string) bool {
	where := h.Provider.Config()
	if _, there := where.WorkQueues[name]; there {
		return false
	}
	h.createWorkQueue(&where, name)
	return true
}

// announce reports the builds of the functions.
func (h *Hub) announce(ctx context.Context) error {
	if err := h.Orchestrators[0].ReportBuild(ctx); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	if !h.options.Reports {
		return nil
	}
	for _, w := range h.Workers {
		if err := w.ReportStart(ctx); err != nil {
			return fmt.Errorf("simhub: %w", err)
		}
	}
	return nil
}
