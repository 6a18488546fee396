// Package querycall defines the request and the response of a query: the bodies of a synchronous invocation of the
// orchestrator function.
package querycall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// Request is the body of an invocation that runs a query. No SQS event has its field.
type Request struct {
	Query *provider.QueryRequest `json:"perdureQuery,omitempty"`
}

// Response is the response of the function. It has one of the fields. A function of a release without queries treats a
// Request as an event without records, and its response has neither field.
type Response struct {
	Output json.RawMessage      `json:"answer,omitempty"`
	Error  *provider.QueryError `json:"error,omitempty"`
}

// Codes of errors that are not a *provider.QueryError in the caller. Each code represents a sentinel error.
const (
	codeNotFound    provider.QueryCode = "not_found"
	codeCorrupt     provider.QueryCode = "corrupt"
	codeUnavailable provider.QueryCode = "unavailable"
	codeInternal    provider.QueryCode = "internal"
)

// NewResponse returns the response for the result or the error of a query.
func NewResponse(q *provider.QueryRequest, output json.RawMessage, err error) Response {
	if err == nil {
		return Response{Output: output}
	}
	if e, ok := errors.AsType[*provider.QueryError](err); ok {
		return Response{Error: e}
	}

	code := codeInternal
	failed, isProviderError := errors.AsType[*provider.Error](err)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		code = codeNotFound
	case errors.Is(err, provider.ErrCorrupt):
		code = codeCorrupt
	case errors.Is(err, context.DeadlineExceeded):
		code = provider.QueryTimedOut
	case isProviderError && failed.Retryable:
		code = codeUnavailable
	}
	return Response{Error: &provider.QueryError{
		InstanceID: q.InstanceID, Query: q.Name, Code: code, Message: err.Error(),
	}}
}

// Result returns the result or the error of the query. It is the inverse of NewResponse.
func (r *Response) Result(q *provider.QueryRequest) (json.RawMessage, error) {
	switch e := r.Error; {
	case e == nil && r.Output == nil:
		return nil, &provider.QueryError{
			InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryUnsupported,
			Message: "the release of the orchestrator function does not support queries",
		}
	case e == nil:
		return r.Output, nil
	case e.Code == codeNotFound:
		return nil, fmt.Errorf("instance %q: %w", q.InstanceID, provider.ErrNotFound)
	case e.Code == codeCorrupt:
		return nil, fmt.Errorf("%w: %s", provider.ErrCorrupt, e.Message)
	case e.Code == codeUnavailable, e.Code == codeInternal:
		return nil, &provider.Error{Op: "Query", InstanceID: q.InstanceID, Retryable: e.Code == codeUnavailable, Err: e}
	default:
		return nil, e
	}
}
