package httpapi

import (
	"net/http"
	"net/url"

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

func (h *handler) executions(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	page, err := h.client.ExecutionsPage(r.Context(), id, client.Paging{
		Limit: int(limit), Cursor: query.Get(paramCursor),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewExecutionPage(id, page))
}
