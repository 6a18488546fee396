package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
)

const largestHistoryPage = 1000

// historyPage is a page of an execution's history. Next is the parameter after of the next page. Its request also needs
// the parameter execution, because the instance may continue as a new execution.
type historyPage struct {
	InstanceID  string            `json:"instanceId"`
	ExecutionID string            `json:"executionId"`
	Notes       []client.Note     `json:"notes,omitempty"`
	Items       []json.RawMessage `json:"items"`
	Next        int64             `json:"next,omitempty"`
}

func (i instances) history(c *call) error {
	limit, err := request.Int(c.query, paramLimit, 1, largestHistoryPage, largestHistoryPage)
	if err != nil {
		return err
	}
	after, err := request.Int(c.query, paramAfter, 0, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	s, err := i.read(c)
	if err != nil {
		return err
	}
	page := historyPage{
		InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Notes: s.Notes, Items: []json.RawMessage{},
	}
	if id := c.query.Get(problem.FieldExecution); id != "" {
		page.ExecutionID = id
	}
	if err := i.fill(c, &page, after, int(limit)); err != nil {
		return err
	}
	return c.reply(http.StatusOK, page)
}

// fill adds events until the page or the response is full. It sets Next if there are more.
func (i instances) fill(c *call, page *historyPage, after int64, limit int) error {
	last := after
	buffer, err := response.BufferFor(historyPage{
		InstanceID: page.InstanceID, ExecutionID: page.ExecutionID, Notes: page.Notes, Next: math.MaxInt64,
	})
	if err != nil {
		return err
	}
	events := i.client.History(c.ctx(), page.InstanceID, client.WithExecutionID(page.ExecutionID),
		client.AfterEvent(after))
	for e, err := range events {
		if errors.Is(err, client.ErrNotFound) {
			return problem.ErrExecutionNotFound
		}
		if err != nil {
			return err
		}
		doc, err := response.Encode(&e)
		if err != nil {
			return err
		}
		if len(page.Items) == limit || !buffer.Add(doc) {
			page.Next = last
			return page.emptyFor(&e, response.Size(doc))
		}
		page.Items, last = append(page.Items, bytes.TrimSpace(doc)), e.ID
	}
	return nil
}

// emptyFor returns the error of a page without events because its first event exceeds a response.
func (p *historyPage) emptyFor(e *history.Event, size int) error {
	if len(p.Items) > 0 {
		return nil
	}
	instead := fmt.Sprintf("use perdure history or the Go client, or skip it with after=%d", e.ID)
	what := fmt.Sprintf("event %d (%s)", e.ID, e.Kind)
	return problem.ResponseTooLarge(paramAfter, what, size, response.Limit, instead)
}
