package httpapi

import (
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

const defaultPage = 100

// Instances is a page of a list.
type Instances struct {
	Items      []client.Status `json:"items"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// NewInstances is the answer that a page makes.
func NewInstances(p client.Page) Instances {
	return Instances{Items: append([]client.Status{}, p.Instances...), NextCursor: p.NextCursor}
}

func (h *handler) list(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPage, defaultPage)
	if err != nil {
		return err
	}
	after, err := timeParam(query, "startedAfter")
	if err != nil {
		return err
	}
	page, err := h.client.ListPage(r.Context(), client.Query{
		Status: client.RuntimeStatus(query.Get("status")), Name: query.Get("name"), StartedAfter: after,
		Limit: int(limit), Cursor: query.Get(paramCursor),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewInstances(page))
}
