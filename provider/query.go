package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// MaxQueryNameBytes is the maximum length of a query's name.
const MaxQueryNameBytes = 256

// QueryRequest is a query of an instance. Its JSON is a stable format, because the function and the client can run
// different releases.
type QueryRequest struct {
	InstanceID string `json:"instanceId"`
	// Name is the name of the query. Input is the input of its handler, or empty.
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Querier runs queries of instances. It is safe for concurrent use. A dispatch.Orchestrator runs queries in its own
// process. A provider can call a process that contains the code.
type Querier interface {
	// QueryInstance runs a query handler on the committed history of an instance, which it reads after the start of the
	// call. It is read-only and can be repeated. It returns ErrNotFound if the instance does not exist, and ErrCorrupt
	// if its history cannot be read. It returns ErrQueriesUnsupported if no orchestrator function is available, and a
	// *QueryError if the query failed.
	QueryInstance(ctx context.Context, q QueryRequest) (response json.RawMessage, err error)
}

// ErrQueriesUnsupported is returned if the hub has no orchestrator function that can run queries.
var ErrQueriesUnsupported error = UnsupportedError{CapabilityQueries}

// QueryCode is the reason why a query failed. New codes can be added.
type QueryCode string

// The codes of a QueryError. Some strings differ from their names, because clients of older releases use them.
const (
	// QueryNotStarted means that the code of the current execution has not run yet. Repeat the query later.
	QueryNotStarted QueryCode = "not_begun"
	// QueryHandlerNotFound means that the code has not set a handler with this name. Known lists the names of the
	// handlers that it has set.
	QueryHandlerNotFound QueryCode = "unknown_query"
	// QueryUnregistered means that the build does not register the orchestration in the instance's version.
	QueryUnregistered QueryCode = "unregistered"
	// QueryBlocked means that the code that runs the query cannot replay the history. It is not a status: the status
	// of the instance can be different from Blocked. Failure is the diagnosis.
	QueryBlocked QueryCode = "blocked"
	// QueryBadInput means that the input does not match the type of the handler. Failure contains the position.
	QueryBadInput QueryCode = "bad_input"
	// QueryFailed means that the handler returned an error or panicked. Failure contains the error.
	QueryFailed QueryCode = "failed"
	// QueryNotReadOnly means that the handler scheduled work, waited or made another decision. Message contains the
	// position.
	QueryNotReadOnly QueryCode = "misused"
	// QueryHandlerTimedOut means that the handler did not return in time. Message contains the position.
	QueryHandlerTimedOut QueryCode = "hung"
	// QueryResultTooLarge means that the result exceeds perdure.MaxQueryResultBytes.
	QueryResultTooLarge QueryCode = "answer_too_large"
	// QueryTimedOut means that no response arrived in time, because the function is busy or the history is long.
	QueryTimedOut QueryCode = "timed_out"
	// QueryFunctionFailed means that the function crashed or failed.
	QueryFunctionFailed QueryCode = "died"
	// QueryUnsupported means that the function's release does not support queries.
	QueryUnsupported QueryCode = "unsupported"
)

// QueryError is the error of a query that has no result. The instance is not affected.
type QueryError struct {
	InstanceID string    `json:"instanceId"`
	Query      string    `json:"query"`
	Code       QueryCode `json:"code"`
	Message    string    `json:"message"`
	// Known lists up to 100 queries that the code has set handlers for, if Code is QueryHandlerNotFound.
	Known []string `json:"known,omitempty"`
	// Failure is the error of the handler, or the diagnosis of blocked code, or nil.
	Failure *history.Failure `json:"failure,omitempty"`
}

// Error implements error.
func (e *QueryError) Error() string {
	return fmt.Sprintf("instance %q: query %q: %s", e.InstanceID, e.Query, e.Message)
}

// As finds the details of the handler's error, for perdure.ErrorDetails.
func (e *QueryError) As(target any) bool { return errdetails.As(target, nil, e.Failure) }

// Is reports whether target is context.DeadlineExceeded and the query timed out.
func (e *QueryError) Is(target error) bool {
	return e.Code == QueryTimedOut && target == context.DeadlineExceeded
}
