package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

const defaultPage = 100

// InstancePage is a page of a list of instances. It may have fewer items than requested if the response would be too
// large.
type InstancePage struct {
	Items      []client.Status `json:"items"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

// NewInstancePage returns the response for a page.
func NewInstancePage(p client.Page[client.Status]) InstancePage {
	return InstancePage{Items: append([]client.Status{}, p.Items...), NextCursor: p.NextCursor}
}

func (h *handler) list(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	q, err := readQuery(query)
	if err != nil {
		return err
	}
	found, err := page(r.Context(), limit, func(ctx context.Context, limit int) (client.Page[client.Status], error) {
		return h.client.ListPage(ctx, q, client.Paging{Limit: limit, Cursor: query.Get(paramCursor)})
	}, func(p client.Page[client.Status]) (any, []client.Status) {
		return InstancePage{NextCursor: p.NextCursor}, p.Items
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewInstancePage(found))
}

// readQuery reads which instances are asked for.
func readQuery(query url.Values) (q client.ListQuery, err error) {
	q = client.ListQuery{
		Status: client.RuntimeStatus(query.Get("status")), Orchestration: query.Get("name"),
		Version: query.Get(fieldVersion), ParentID: query.Get("parent"),
	}
	if q.Tags, err = tagsParam(query); err != nil {
		return q, err
	}
	if q.StartedAfter, err = timeParam(query, fieldStartedAfter); err != nil {
		return q, err
	}
	if q.StartedBefore, err = timeParam(query, fieldStartedBefore); err != nil {
		return q, err
	}
	if f, wrong := errors.AsType[*provider.FieldError](provider.CheckTags(q.Tags)); wrong {
		return q, &provider.FieldError{Field: paramTag, Problem: f.Problem} // as the parameter is called
	}
	return q, nil
}
