package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/response"
)

// CancellationPage is a page of the cancellations of an execution. It may have fewer items than requested if the
// response would be too large.
type CancellationPage struct {
	InstanceID  string                `json:"instanceId"`
	ExecutionID string                `json:"executionId"`
	StartedAt   time.Time             `json:"startedAt,omitzero"`
	Items       []client.Cancellation `json:"items"`
	NextCursor  string                `json:"nextCursor,omitempty"`
}

// NewCancellationPage returns the response for a page.
func NewCancellationPage(p client.CancellationPage) CancellationPage {
	return CancellationPage{
		InstanceID: p.InstanceID, ExecutionID: p.ExecutionID, StartedAt: p.StartedAt.UTC(),
		Items: append([]client.Cancellation{}, p.Items...), NextCursor: p.NextCursor,
	}
}

func (i instances) cancellations(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	found, err := response.Page(c.ctx(), limit, func(ctx context.Context, limit int) (client.CancellationPage, error) {
		return i.client.CancellationsPage(ctx, id, c.query.Get(problem.FieldExecution), client.Paging{
			Limit: limit, Cursor: c.query.Get(paramCursor),
		})
	}, func(p client.CancellationPage) (any, []client.Cancellation) {
		items := p.Items
		p.Items = nil
		return NewCancellationPage(p), items
	})
	if errors.Is(err, client.ErrNotFound) { // the instance, or one of its executions
		if _, err := i.client.Status(c.ctx(), id); err != nil {
			return err
		}
		return problem.ErrExecutionNotFound
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewCancellationPage(found))
}
