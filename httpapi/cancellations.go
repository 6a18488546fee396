package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

// CancellationPage is a page of the cancellations of an execution. It may have fewer items than requested if the
// response would be too large.
type CancellationPage struct {
	InstanceID  string                `json:"instanceId"`
	ExecutionID string                `json:"executionId"`
	Items       []client.Cancellation `json:"items"`
	NextCursor  string                `json:"nextCursor,omitempty"`
}

// NewCancellationPage returns the response for a page.
func NewCancellationPage(p client.CancellationPage) CancellationPage {
	return CancellationPage{
		InstanceID: p.InstanceID, ExecutionID: p.ExecutionID, Items: append([]client.Cancellation{}, p.Items...),
		NextCursor: p.NextCursor,
	}
}

// errNoExecution answers for an execution that an instance does not have, or has no more: one that is being purged
// loses them first.
func errNoExecution() error {
	return &problem{
		Status: http.StatusNotFound, Code: codeExecutionNotFound, Field: paramExecution,
		Detail: "execution not found, or the instance is being deleted",
	}
}

func (h *handler) cancellations(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	found, err := page(r.Context(), limit, func(ctx context.Context, limit int) (client.CancellationPage, error) {
		return h.client.CancellationsPage(ctx, id, query.Get(paramExecution), client.Paging{
			Limit: limit, Cursor: query.Get(paramCursor),
		})
	}, func(p client.CancellationPage) (any, []client.Cancellation) {
		items := p.Items
		p.Items = nil
		return NewCancellationPage(p), items
	})
	if errors.Is(err, client.ErrNotFound) { // the instance, or one of its executions
		if _, err := h.client.Status(r.Context(), id); err != nil {
			return err
		}
		return errNoExecution()
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewCancellationPage(found))
}
