package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
)

// The codes of queries without an answer: those of client.QueryCode, which say of what they are.
const (
	codeNobodyToAsk = "nobody_to_ask"
	prefixQuery     = "query_"
)

const (
	fieldQuery = "query"
	fieldInput = "input"
)

// QueryResponse is the response to a query.
type QueryResponse struct {
	InstanceID string `json:"instanceId"`
	Query      string `json:"query"`
	// Result is the result of the handler.
	Result json.RawMessage `json:"answer"`
}

// queryInstance asks an instance's code. It is a POST for the sake of its body, and changes nothing.
func queryInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	var query string
	var input json.RawMessage
	if err := readBody(w, r, map[string]any{fieldQuery: &query, fieldInput: &input}); err != nil {
		return err
	}
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	answer, err := h.client.Query(r.Context(), id, query, input)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, QueryResponse{InstanceID: id, Query: query, Result: answer})
}

// queryProblem is the problem of a query that has no answer; false for other errors. Its text is about the caller's
// instance, and its code's. None is of 500 and more: what a caller asks must not ring the alarm of the API.
func queryProblem(err error) (p problem, ok bool) {
	if errors.Is(err, client.ErrQueriesUnsupported) {
		return problem{
			Status: http.StatusConflict, Code: codeNobodyToAsk,
			Detail: "the hub has no orchestrator function that answers queries; deploy one of this release",
		}, true
	}
	e, ok := errors.AsType[*client.QueryError](err)
	if !ok {
		return p, false
	}
	p = problem{
		Status: http.StatusUnprocessableEntity, Code: prefixQuery + string(e.Code), Detail: e.Message,
		Field: fieldQuery, Details: detailsIn(err),
	}
	switch e.Code {
	case client.QueryHandlerNotFound:
		p.Status, p.Code = http.StatusNotFound, string(e.Code)
	case client.QueryBadInput:
		p.Status, p.Field = http.StatusBadRequest, fieldInput
	case client.QueryNotStarted:
		p.Status, p.Field, p.Retryable = http.StatusConflict, fieldInstanceID, true
	case client.QueryBlocked, client.QueryUnregistered:
		p.Status, p.Field = http.StatusConflict, fieldInstanceID
	case client.QueryTimedOut:
		p.Retryable = true
	case client.QueryUnsupported:
		p.Status = http.StatusConflict
	case client.QueryFailed, client.QueryNotReadOnly, client.QueryHandlerTimedOut, client.QueryResultTooLarge,
		client.QueryFunctionFailed:
	}
	return p, true
}
