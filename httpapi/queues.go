package httpapi

import (
	"net/http"

	"github.com/perdure/perdure/admin"
)

// QueueList lists the queues of a hub.
type QueueList struct {
	Queues []admin.Queue `json:"queues"`
}

// NewQueueList returns the response for queues.
func NewQueueList(queues []admin.Queue) QueueList {
	return QueueList{append([]admin.Queue{}, queues...)}
}

func (q queues) list(c *call) error {
	found, err := q.admin.Queues(c.ctx())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewQueueList(found))
}
