package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

const largestHistoryPage = 1000

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
	after, err := intParam(query, paramAfter, 0, math.MaxInt64, 0)
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
	if err := fill(h, r, &page, after, int(limit)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// fill adds events until the page is full, or an answer holds no more, and sets where the next page begins if there is
// one.
func fill(h *handler, r *http.Request, page *historyPage, after int64, limit int) error {
	last := after
	room, err := roomBeside(historyPage{
		InstanceID: page.InstanceID, ExecutionID: page.ExecutionID, Next: math.MaxInt64,
	})
	if err != nil {
		return err
	}
	for e, err := range h.client.History(r.Context(), page.InstanceID, client.WithExecutionID(page.ExecutionID),
		client.AfterEvent(after)) {
		if errors.Is(err, client.ErrNotFound) {
			return errNoExecution()
		}
		if err != nil {
			return err
		}
		doc, err := encode(&e)
		if err != nil {
			return err
		}
		if len(page.Items) == limit || !room.take(doc) {
			page.Next = last
			return page.emptyFor(&e, wireSize(doc))
		}
		page.Items, last = append(page.Items, bytes.TrimSpace(doc)), e.ID
	}
	return nil
}

// emptyFor is the error of a page that holds nothing, since the event it begins with is more than an answer holds.
func (p *historyPage) emptyFor(e *history.Event, size int) error {
	if len(p.Items) > 0 {
		return nil
	}
	instead := fmt.Sprintf("use perdure history or the Go client, or skip it with after=%d", e.ID)
	return errAnswerTooLarge(paramAfter, fmt.Sprintf("event %d (%s)", e.ID, e.Kind), size, instead)
}
