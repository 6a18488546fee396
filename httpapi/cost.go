package httpapi

import (
	"context"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/internal/logevent"
)

// Cost is the cost estimate of an instance, or the reason why it is unknown.
type Cost struct {
	*admin.CostEstimate

	ReadError *ReadError `json:"unread,omitempty"`
}

// readCost estimates the cost of an instance, within the time limit of a response that reads a history.
func (i instances) readCost(c *call, instanceID string) *Cost {
	limited, stop := context.WithTimeout(c.ctx(), pendingTime)
	defer stop()
	cost, err := i.admin.EstimateCost(limited, instanceID)
	if err != nil {
		c.log.WarnContext(c.ctx(), "cost estimate failed", "event", logevent.CostReadFailed, "error", err)
		return &Cost{ReadError: unreadFor(err)}
	}
	return &Cost{CostEstimate: &cost}
}
