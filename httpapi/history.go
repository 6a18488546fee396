package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

const (
	largestHistoryPage = 1000
	// historyPageBytes ends a page early: a Lambda answers with at most 6 MB.
	historyPageBytes = 4 << 20
)

// historyPage is a page of an execution's history. Next is what to pass as after for the page that follows; with
// ExecutionID as execution, so that it stays the same history.
type historyPage struct {
	InstanceID  string            `json:"instanceId"`
	ExecutionID string            `json:"executionId"`
	Items       []json.RawMessage `json:"items"`
	Next        int64             `json:"next,omitempty"`
}

func (h *handler) history(w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, largestHistoryPage, largestHistoryPage)
	if err != nil {
		return err
	}
	after, err := intParam(query, "after", 0, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	s, err := h.read(r)
	if err != nil {
		return err
	}
	page := historyPage{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Items: []json.RawMessage{}}
	if id := query.Get(paramExecution); id != "" {
		page.ExecutionID = id
	}
	if err := h.fill(r, &page, after, int(limit)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// fill adds events until the page is full, and says where the next one begins if there is more.
func (h *handler) fill(r *http.Request, page *historyPage, after int64, limit int) error {
	last, size := after, 0
	for e, err := range h.client.History(r.Context(), page.InstanceID, client.WithExecution(page.ExecutionID), client.After(after)) {
		if errors.Is(err, client.ErrNotFound) {
			return errNoExecution()
		}
		if err != nil {
			return err
		}
		doc, err := json.Marshal(&e)
		if err != nil {
			return fmt.Errorf("httpapi: instance %q: encode %s: %w", page.InstanceID, e.String(), err)
		}
		if n := len(page.Items); n == limit || n > 0 && size+len(doc) > historyPageBytes {
			page.Next = last
			return nil
		}
		page.Items, last, size = append(page.Items, doc), e.ID, size+len(doc)
	}
	return nil
}
