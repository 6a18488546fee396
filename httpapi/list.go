package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

const defaultPage = 100

// Instances is a page of a list. It ends before its limit where an answer holds no more.
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
	found, err := page(r.Context(), limit, func(ctx context.Context, limit int) (client.Page, error) {
		return h.client.ListPage(ctx, client.Query{
			Status: client.RuntimeStatus(query.Get("status")), Name: query.Get("name"), StartedAfter: after,
			Limit: limit, Cursor: query.Get(paramCursor),
		})
	}, func(p client.Page) (any, []client.Status) { return Instances{NextCursor: p.NextCursor}, p.Instances })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewInstances(found))
}
