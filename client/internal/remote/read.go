package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client/internal/cancellog"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Reader reads instances through the API. Its types are those of package client, whose JSON is that of the API.
// Complete is called for each status that was read.
type Reader[Status, Pending any] struct {
	*Hub

	Complete func(s *Status)
}

// longestWait is the time for which the API holds a request of a wait.
const longestWait = 20 * time.Second

// result is the response for the result of an instance.
type result struct {
	Status provider.RuntimeStatus `json:"status"`
}

// notPending is the query of a read without pending items.
func notPending() url.Values { return url.Values{"pending": {"false"}} }

const (
	opGet     = "getInstance"
	opHistory = "getHistory"

	paramExecution = "execution"
	paramLimit     = "limit"
)

// Status returns the status of an instance.
func (r Reader[S, P]) Status(ctx context.Context, instanceID string) (s S, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return s, err
	}
	s, err = apiclient.Get[S](ctx, r.api, apiclient.Call{
		Operation: opGet, Path: []string{instanceID}, InstanceID: instanceID, Query: notPending(),
	})
	r.Complete(&s)
	return s, err
}

// Wait waits until an instance has ended. If ctx ends first, it returns the last known status.
func (r Reader[S, P]) Wait(ctx context.Context, instanceID string) (last S, err error) {
	query := notPending()
	call := apiclient.Call{Operation: opGet, Path: []string{instanceID}, InstanceID: instanceID, Query: query}
	ended, err := r.poll(ctx, call, &last)
	for err == nil && !ended.Terminal() {
		wait := apiclient.Call{
			Operation: "getResult", Path: call.Path, InstanceID: instanceID,
			Query: url.Values{"wait": {longestWait.String()}},
		}
		if ended, err = r.poll(ctx, wait, &last); err == nil && ended.Terminal() {
			_, err = r.poll(ctx, call, &last)
		}
	}
	return last, err
}

// WaitForStart waits until the status of an instance is not Pending. If ctx ends first, it returns the last known
// status.
func (r Reader[S, P]) WaitForStart(ctx context.Context, instanceID string) (last S, err error) {
	status := provider.StatusPending
	for err == nil && status == provider.StatusPending {
		query := notPending()
		if r.isSet(last) {
			query.Set("waitForStart", longestWait.String())
		}
		status, err = r.poll(ctx, apiclient.Call{
			Operation: opGet, Path: []string{instanceID}, InstanceID: instanceID, Query: query,
		}, &last)
	}
	return last, err
}

// poll reads the status of an instance once, and updates last from the response. It does not return immediately
// if the instance has not changed.
func (r Reader[S, P]) poll(
	ctx context.Context, call apiclient.Call, last *S,
) (provider.RuntimeStatus, error) {
	if err := inputcheck.InstanceID(call.InstanceID); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	from := r.hub.Now()
	resp, err := r.api.Do(ctx, call)
	if err != nil {
		return "", err
	}
	var is result
	if err := resp.Decode(&is); err != nil {
		return "", err
	}
	if err := resp.Decode(last); err != nil {
		return "", err
	}
	r.Complete(last)
	long := call.Query.Has("wait") || call.Query.Has("waitForStart")
	if long && (resp.Status == http.StatusAccepted || is.Status == provider.StatusPending) {
		err = r.pace(ctx, from, resp.RetryAfter)
	}
	return is.Status, err
}

// isSet reports whether a status was read.
func (Reader[S, P]) isSet(s S) bool {
	doc, err := json.Marshal(s)
	var of struct {
		InstanceID string `json:"instanceId"`
	}
	return err == nil && json.Unmarshal(doc, &of) == nil && of.InstanceID != ""
}

// page is a page of a list.
type page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor"`
}

// paged returns a query with a limit and a cursor.
func paged(query url.Values, limit int, cursor string) url.Values {
	if limit > 0 {
		query.Set(paramLimit, strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return query
}

// List returns a page of instances.
func (r Reader[S, P]) List(
	ctx context.Context, q *provider.ListQuery,
) (items []S, next string, err error) {
	query := paged(url.Values{}, q.Limit, q.Cursor)
	for name, value := range map[string]string{
		"status": string(q.Status), "name": q.Name, "version": q.Version, "parent": q.Parent,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"startedAfter": q.StartedAfter, "startedBefore": q.StartedBefore} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(q.Tags)) {
		if strings.Contains(k, "=") {
			return nil, "", &provider.FieldError{
				Field: "tags", Problem: "has a key with =, which the HTTP API cannot select",
			}
		}
		query.Add("tag", k+"="+q.Tags[k])
	}
	p, err := apiclient.Get[page[S]](ctx, r.api, apiclient.Call{Operation: "listInstances", Query: query})
	for i := range p.Items {
		r.Complete(&p.Items[i])
	}
	return p.Items, p.NextCursor, err
}

// ExecutionsPage returns a page of executions.
func (h *Hub) ExecutionsPage(
	ctx context.Context, instanceID string, limit int, cursor string,
) (items []provider.Execution, next string, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return nil, "", err
	}
	p, err := apiclient.Get[page[provider.Execution]](ctx, h.api, apiclient.Call{
		Operation: "listExecutions", Path: []string{instanceID}, InstanceID: instanceID,
		Query: paged(url.Values{}, limit, cursor),
	})
	return p.Items, p.NextCursor, err
}

// ListExecutions yields the executions of an instance, page by page.
func (h *Hub) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return pages(func(cursor string) ([]provider.Execution, string, error) {
		return h.ExecutionsPage(ctx, instanceID, inputcheck.MaxPageSize, cursor)
	})
}

// pages yields the items of a list, page by page. It ends with the first error.
func pages[T any](read func(cursor string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			items, next, err := read(cursor)
			for _, x := range items {
				if !yield(x, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

// Events yields the events of an execution after an event, page by page. Later pages belong to the execution of the
// first one.
func (h *Hub) Events(
	ctx context.Context, of history.ExecutionRef, after int64,
) iter.Seq2[history.Event, error] {
	instanceID, executionID := of.InstanceID, of.ExecutionID
	return pages(func(cursor string) (items []history.Event, next string, err error) {
		query := url.Values{}
		if cursor == "" {
			cursor = strconv.FormatInt(after, 10)
		}
		query.Set("after", cursor)
		if executionID != "" {
			query.Set(paramExecution, executionID)
		}
		p, err := apiclient.Get[struct {
			ExecutionID string          `json:"executionId"`
			Items       []history.Event `json:"items"`
			Next        int64           `json:"next"`
		}](ctx, h.api, apiclient.Call{
			Operation: opHistory, Path: []string{instanceID}, InstanceID: instanceID, Query: query,
		})
		executionID = cmp.Or(executionID, p.ExecutionID)
		if p.Next > 0 {
			next = strconv.FormatInt(p.Next, 10)
		}
		return p.Items, next, err
	})
}

// Cancellations yields the cancellations of an execution, page by page.
func (h *Hub) Cancellations(
	ctx context.Context, of history.ExecutionRef,
) iter.Seq2[cancellog.Cancellation, error] {
	return pages(func(cursor string) ([]cancellog.Cancellation, string, error) {
		p, err := h.CancellationsPage(ctx, of, inputcheck.MaxPageSize, cursor)
		of.ExecutionID = cmp.Or(of.ExecutionID, p.ExecutionID)
		return p.Items, p.NextCursor, err
	})
}

// CancellationsPage returns a page of cancellations.
func (h *Hub) CancellationsPage(
	ctx context.Context, of history.ExecutionRef, limit int, cursor string,
) (p cancellog.Page, err error) {
	query := paged(url.Values{}, limit, cursor)
	if of.ExecutionID != "" {
		query.Set(paramExecution, of.ExecutionID)
	}
	resp, err := apiclient.Get[struct {
		page[cancellog.Cancellation]

		ExecutionID string    `json:"executionId"`
		StartedAt   time.Time `json:"startedAt"`
	}](ctx, h.api, apiclient.Call{
		Operation: "listCancellations", Path: []string{of.InstanceID}, InstanceID: of.InstanceID, Query: query,
	})
	return cancellog.Page{
		ExecutionID: resp.ExecutionID, StartedAt: resp.StartedAt, Items: resp.Items, NextCursor: resp.NextCursor,
	}, err
}

// Pending returns the pending items of an execution. The API has those of the current execution; an earlier one has
// none.
func (r Reader[S, P]) Pending(
	ctx context.Context, of history.ExecutionRef, limit int,
) (p P, err error) {
	if err := inputcheck.InstanceID(of.InstanceID); err != nil {
		return p, err
	}
	resp, err := apiclient.Get[struct {
		ExecutionID string          `json:"executionId"`
		Pending     json.RawMessage `json:"pending"`
	}](ctx, r.api, apiclient.Call{
		Operation: opGet, Path: []string{of.InstanceID}, InstanceID: of.InstanceID,
		Query: url.Values{paramLimit: {strconv.Itoa(limit)}},
	})
	if err != nil {
		return p, err
	}
	if of.ExecutionID != "" && of.ExecutionID != resp.ExecutionID {
		_, err = r.api.Do(ctx, apiclient.Call{
			Operation: opHistory, Path: []string{of.InstanceID}, InstanceID: of.InstanceID,
			Query: url.Values{paramExecution: {of.ExecutionID}, paramLimit: {"1"}},
		})
		return p, err
	}
	if resp.Pending == nil {
		return p, nil
	}
	var unread struct {
		Unread *apiwire.ReadError `json:"unread"`
	}
	unreadable := func(err error) error {
		return apiclient.NewError(opGet, of.InstanceID, true, fmt.Errorf("decode pending items: %w", err))
	}
	if err := json.Unmarshal(resp.Pending, &unread); err != nil {
		return p, unreadable(err)
	}
	if e := unread.Unread; e != nil {
		return p, apiclient.ErrorOf(of.InstanceID, opGet, e.Code, e.Detail, e.Retryable)
	}
	if err := json.Unmarshal(resp.Pending, &p); err != nil {
		return p, unreadable(err)
	}
	return p, nil
}
