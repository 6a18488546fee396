package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/perdure/perdure/httpapi/internal/problem"
)

// QueryResponse is the response to a query.
type QueryResponse struct {
	InstanceID string `json:"instanceId"`
	Query      string `json:"query"`
	// Result is the result of the handler.
	Result json.RawMessage `json:"answer"`
}

// query runs a query handler. It is a POST because it has a body.
func (i instances) query(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	var query string
	var input json.RawMessage
	if err := c.body(map[string]any{problem.FieldQuery: &query, problem.FieldInput: &input}); err != nil {
		return err
	}
	result, err := i.client.Query(c.ctx(), id, query, orNull(input))
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, QueryResponse{InstanceID: id, Query: query, Result: result})
}
