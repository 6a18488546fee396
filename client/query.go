package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/client/internal/querying"
	"github.com/perdure/perdure/provider"
)

// ErrQueriesUnsupported means that the hub has no orchestrator function that can run queries, for example because a
// process polls the inbox. Use WithQuerier to set another provider.Querier.
var ErrQueriesUnsupported = provider.ErrQueriesUnsupported

// QueryError reports a query without a result. Its Code is one of the constants below. For a query that timed out,
// errors.Is finds context.DeadlineExceeded in it.
type QueryError = provider.QueryError

// QueryCode is the reason why a query has no result.
type QueryCode = provider.QueryCode

// Codes of a QueryError.
const (
	// QueryNotStarted means that the current execution has not run its first turn yet. Query again later.
	QueryNotStarted = provider.QueryNotStarted
	// QueryHandlerNotFound means that the code has not set a handler of this name. Known holds the names of the
	// handlers that it has set.
	QueryHandlerNotFound = provider.QueryHandlerNotFound
	// QueryUnregistered means that the build does not have the orchestration in the instance's version.
	QueryUnregistered = provider.QueryUnregistered
	// QueryBlocked means that the code cannot replay the history. The status of the instance can be different from
	// StatusBlocked. Failure is the diagnosis.
	QueryBlocked = provider.QueryBlocked
	// QueryBadInput means that the input does not match the handler's input type. Failure contains the position.
	QueryBadInput = provider.QueryBadInput
	// QueryFailed means that the handler returned an error or panicked. Failure contains the error.
	QueryFailed = provider.QueryFailed
	// QueryNotReadOnly means that the handler tried to schedule, wait or decide something. Message contains the
	// position.
	QueryNotReadOnly = provider.QueryNotReadOnly
	// QueryHandlerTimedOut means that the handler did not return in time. Message contains the position.
	QueryHandlerTimedOut = provider.QueryHandlerTimedOut
	// QueryResultTooLarge means that the result exceeds perdure.MaxQueryResultBytes. Failure contains the size.
	QueryResultTooLarge = provider.QueryResultTooLarge
	// QueryTimedOut means that no response arrived in time, because the function is busy or the history is long.
	QueryTimedOut = provider.QueryTimedOut
	// QueryFunctionFailed means that the orchestrator function crashed or failed.
	QueryFunctionFailed = provider.QueryFunctionFailed
	// QueryUnsupported means that the orchestrator function runs a release without queries.
	QueryUnsupported = provider.QueryUnsupported
)

// MaxQueryNameBytes is the maximum length of a query's name in bytes.
const MaxQueryNameBytes = provider.MaxQueryNameBytes

// QueryTimeout is the maximum time that Query waits for a response.
const QueryTimeout = querying.Timeout

// WithQuerier sets the provider.Querier that runs queries. It can be a dispatch.Orchestrator of this process or the
// Querier of a lambdahandler.Function. By default, or if a is nil, the client uses the Backend if it is a
// provider.Querier. A hub of package dynamo invokes the orchestrator function.
func WithQuerier(a provider.Querier) Option { return func(o *options) { o.querier = a } }

// Query runs a query handler of an instance and returns its result as JSON. The instance's code sets the handler with
// perdure.SetQueryHandler. The input is encoded as JSON; a json.RawMessage is used as is.
//
// The handler sees the state after all turns that were committed before the call, and possibly after later turns. The
// instance can be running, paused, blocked or ended. It does not change the instance and can be repeated.
//
// Query returns a *QueryError if the query has no result, ErrNotFound if the instance does not exist, and
// ErrQueriesUnsupported if the hub has no function to invoke. After QueryTimeout, or if the deadline of ctx expires
// first, the QueryError has the code QueryTimedOut.
//
// Each query replays the instance in the orchestrator function and uses its concurrency. Do not poll with queries.
func (c *Client) Query(ctx context.Context, instanceID, query string, input any) (json.RawMessage, error) {
	result, err := querying.Run(ctx, c.querier, querying.Query{InstanceID: instanceID, Name: query, Input: input})
	if err != nil {
		return nil, fmt.Errorf("client: query: %w", err)
	}
	return result, nil
}
