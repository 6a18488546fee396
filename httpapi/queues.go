package httpapi

import (
	"net/http"

	"github.com/perdure/perdure/admin"
)

// Queues lists the queues of a hub.
type Queues struct {
	Queues []admin.Queue `json:"queues"`
}

// NewQueues returns the response for queues.
func NewQueues(queues []admin.Queue) Queues { return Queues{append([]admin.Queue{}, queues...)} }

func (q queues) list(c *call) error {
	found, err := q.admin.Queues(c.ctx())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewQueues(found))
}
