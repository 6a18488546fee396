package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/internal/inputcheck"
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

func (i instances) list(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	q, err := readQuery(c.query)
	if err != nil {
		return err
	}
	read := func(ctx context.Context, limit int) (client.Page[client.Status], error) {
		return i.client.ListPage(ctx, q, client.Paging{Limit: limit, Cursor: c.query.Get(paramCursor)})
	}
	found, err := response.Page(c.ctx(), limit, read, func(p client.Page[client.Status]) (any, []client.Status) {
		return InstancePage{NextCursor: p.NextCursor}, p.Items
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewInstancePage(found))
}

// readQuery reads the filter of a list.
func readQuery(query url.Values) (q client.ListQuery, err error) {
	q = client.ListQuery{
		Status: client.RuntimeStatus(query.Get("status")), Orchestration: query.Get("name"),
		Version: query.Get(fieldVersion), ParentID: query.Get("parent"),
	}
	if q.Tags, err = request.Tags(query); err != nil {
		return q, err
	}
	if q.StartedAfter, err = request.Time(query, fieldStartedAfter); err != nil {
		return q, err
	}
	if q.StartedBefore, err = request.Time(query, fieldStartedBefore); err != nil {
		return q, err
	}
	if f, wrong := errors.AsType[*provider.FieldError](inputcheck.Tags(q.Tags)); wrong {
		return q, &provider.FieldError{Field: request.ParamTag, Problem: f.Problem} // the name of the parameter
	}
	return q, nil
}
