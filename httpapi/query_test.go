package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

func TestQuery_handlerReturns_resultIsReturned(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.SetQueryFunc(func(q provider.QueryRequest) (json.RawMessage, error) {
		return json.RawMessage(`{"asked":"` + q.InstanceID + ` ` + q.Name + `","with":` + string(q.Input) + `}`), nil
	})
	for body, want := range map[string]string{
		`{"query":"progress"}`:                   `{"instanceId":"a/b","query":"progress","answer":{"asked":"a/b progress","with":null}}`,
		`{"query":"progress","input":{"n":[1]}}`: `{"instanceId":"a/b","query":"progress","answer":{"asked":"a/b progress","with":{"n":[1]}}}`,
	} {
		h.call(t, http.MethodPost, "/v1/instances/~YS9i/query", body).want(http.StatusOK).wantBody(want)
	}
	for body, field := range map[string]string{
		``: "body", `{}`: "query", `{"query":""}`: "query", `{"query":7}`: "query", `{"query":"a\u0000"}`: "query",
		`{"query":"a","more":1}`:                       "more",
		`{"query":"` + strings.Repeat("x", 257) + `"}`: "query",
	} {
		h.call(t, http.MethodPost, "/v1/instances/one/query", body).wantProblem(http.StatusBadRequest,
			"invalid_request", field)
	}
	large := `{"query":"q","input":"` + strings.Repeat("x", perdure.MaxPayloadBytes) + `"}`
	h.call(t, http.MethodPost, "/v1/instances/one/query", large).wantProblem(http.StatusRequestEntityTooLarge,
		"payload_too_large", "input")
}

// queryCodes maps each failure of a query to its status, problem code and field.
var queryCodes = map[client.QueryCode]struct {
	status      int
	code, field string
}{
	client.QueryNotStarted:      {http.StatusConflict, "query_not_begun", "instanceId"},
	client.QueryHandlerNotFound: {http.StatusNotFound, "unknown_query", "query"},
	client.QueryUnregistered:    {http.StatusConflict, "query_unregistered", "instanceId"},
	client.QueryBlocked:         {http.StatusConflict, "query_blocked", "instanceId"},
	client.QueryBadInput:        {http.StatusBadRequest, "query_bad_input", "input"},
	client.QueryFailed:          {http.StatusUnprocessableEntity, "query_failed", "query"},
	client.QueryNotReadOnly:     {http.StatusUnprocessableEntity, "query_misused", "query"},
	client.QueryHandlerTimedOut: {http.StatusUnprocessableEntity, "query_hung", "query"},
	client.QueryResultTooLarge:  {http.StatusUnprocessableEntity, "query_answer_too_large", "query"},
	client.QueryTimedOut:        {http.StatusUnprocessableEntity, "query_timed_out", "query"},
	client.QueryFunctionFailed:  {http.StatusUnprocessableEntity, "query_died", "query"},
	client.QueryUnsupported:     {http.StatusConflict, "query_unsupported", "query"},
}

const aQuery = "/v1/instances/one/query"

// failQueries makes all queries of a hub fail with the given code.
func failQueries(h *hub, code client.QueryCode) {
	h.SetQueryFunc(func(q provider.QueryRequest) (json.RawMessage, error) {
		return nil, &provider.QueryError{InstanceID: q.InstanceID, Query: q.Name, Code: code, Message: "why it is so"}
	})
}

func TestQuery_eachFailure_hasItsOwnCode(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.call(t, http.MethodPost, aQuery, `{"query":"q"}`).wantProblem(http.StatusConflict, "nobody_to_ask", "")
	for code, want := range queryCodes {
		failQueries(h, code)
		a := h.call(t, http.MethodPost, aQuery, `{"query":"q"}`)
		a.wantProblem(want.status, want.code, want.field)
		if !strings.Contains(a.Body.String(), "why it is so") {
			t.Errorf("%s: %s", code, a.Body)
		}
	}
	h.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return nil, provider.ErrNotFound })
	h.call(t, http.MethodPost, aQuery, `{"query":"q"}`).wantProblem(http.StatusNotFound, "instance_not_found",
		"instanceId")
}

// queryResponses returns each response that the document describes for a query.
func queryResponses(t *testing.T, large string, down, refused error) (all []callResponse) {
	t.Helper()
	h := newRunningHub(t)
	ask := func(body string, header ...string) {
		all = append(all, h.call(t, http.MethodPost, aQuery, body, header...))
	}
	ask(`{"query":"q"}`) // the API cannot send queries
	for code := range queryCodes {
		failQueries(h, code)
		ask(`{"query":"q"}`)
	}
	h.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return json.RawMessage("1"), nil })
	ask(`{"query":"q"}`)
	ask(`{"query":"q","input":` + large + `}`)
	ask(`{"query":"q"}`, "Content-Type", "text/plain")
	for _, err := range []error{down, refused} {
		h.FailWith(err)
		ask(`{"query":"q"}`)
	}
	return all
}
