package httpapi

import (
	"net/http"

	"github.com/perdure/perdure/client"
)

// ExecutionPage is a page of an instance's executions.
type ExecutionPage struct {
	InstanceID string             `json:"instanceId"`
	Items      []client.Execution `json:"items"`
	NextCursor string             `json:"nextCursor,omitempty"`
}

// NewExecutionPage returns the response for a page.
func NewExecutionPage(instanceID string, p client.Page[client.Execution]) ExecutionPage {
	return ExecutionPage{
		InstanceID: instanceID, Items: append([]client.Execution{}, p.Items...), NextCursor: p.NextCursor,
	}
}

func (i instances) executions(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	page, err := i.client.ExecutionsPage(c.ctx(), id, client.Paging{
		Limit: int(limit), Cursor: c.query.Get(paramCursor),
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewExecutionPage(id, page))
}
