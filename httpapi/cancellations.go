package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Cancellations is a page of what was cancelled in an execution.
type Cancellations struct {
	InstanceID  string                `json:"instanceId"`
	ExecutionID string                `json:"executionId"`
	Items       []client.Cancellation `json:"items"`
	NextCursor  string                `json:"nextCursor,omitempty"`
}

// NewCancellations is the answer of at most limit items from place from on: what is added comes last, so that places stay.
func NewCancellations(c client.Cancellations, from, limit int) Cancellations {
	from = min(from, len(c.Items))
	end := min(from+limit, len(c.Items))
	page := Cancellations{InstanceID: c.InstanceID, ExecutionID: c.ExecutionID, Items: append([]client.Cancellation{}, c.Items[from:end]...)}
	if end < len(c.Items) {
		page.NextCursor = strconv.Itoa(end)
	}
	return page
}

// errNoExecution answers for an execution that an instance does not have, or has no more: one that is being purged loses them first.
func errNoExecution() error {
	return &problem{Status: http.StatusNotFound, Code: codeExecutionNotFound, Field: paramExecution, Detail: "the instance has no such execution, or is being deleted"}
}

func (h *handler) cancellations(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPage, defaultPage)
	if err != nil {
		return err
	}
	from := 0
	if cursor := query.Get(paramCursor); cursor != "" {
		if from, err = strconv.Atoi(cursor); err != nil || from < 1 {
			return &provider.FieldError{Field: paramCursor, Problem: "belongs to another list"}
		}
	}
	s, err := h.read(r)
	if err != nil {
		return err
	}
	found, err := h.client.Cancellations(r.Context(), s.InstanceID, cmp.Or(query.Get(paramExecution), s.ExecutionID))
	if errors.Is(err, client.ErrNotFound) {
		return errNoExecution()
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewCancellations(found, from, int(limit)))
}
