package httpapi

import (
	"context"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
)

const paramCost = "cost"

// Cost is the cost estimate of an instance, or the reason why it is unknown.
type Cost struct {
	*client.CostEstimate

	ReadError *ReadError `json:"unread,omitempty"`
}

// readCost reckons what an instance has cost, as long as an answer may wait for what is in a history.
func readCost(ctx context.Context, h *handler, instanceID string) *Cost {
	limited, stop := context.WithTimeout(ctx, pendingTime)
	defer stop()
	cost, err := client.EstimateCost(limited, h.client, instanceID)
	if err != nil {
		h.log.WarnContext(ctx, "cost estimate failed", "event", logevent.CostReadFailed, "error", err)
		return &Cost{ReadError: unreadFor(err)}
	}
	return &Cost{CostEstimate: &cost}
}
