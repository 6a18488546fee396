// Package querying runs the query handlers of instances.
package querying

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Timeout is the maximum time that Run waits for a response.
const Timeout = 25 * time.Second

// Query is a query of an instance.
type Query struct {
	InstanceID, Name string
	Input            any
}

// Run checks a query, and runs it unless the hub cannot run queries, in which case the querier is nil. After Timeout,
// or if the deadline of ctx expires first, the error is a *provider.QueryError with provider.QueryTimedOut.
func Run(ctx context.Context, querier provider.Querier, q Query) (json.RawMessage, error) {
	if err := inputcheck.InstanceID(q.InstanceID); err != nil {
		return nil, err
	}
	if err := inputcheck.Text("query", q.Name, 1, provider.MaxQueryNameBytes); err != nil {
		return nil, err
	}
	payload, err := hub.Encode("input", q.Input, perdure.MaxPayloadBytes)
	if err != nil {
		return nil, err
	}
	doc, _ := payload.Document()
	if querier == nil {
		return nil, provider.ErrQueriesUnsupported
	}

	limited, stop := context.WithTimeout(ctx, Timeout)
	defer stop()
	result, err := querier.QueryInstance(limited, provider.QueryRequest{
		InstanceID: q.InstanceID, Name: q.Name, Input: doc,
	})
	_, reported := errors.AsType[*provider.QueryError](err)
	if err != nil && !reported && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return nil, &provider.QueryError{
			InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryTimedOut,
			Message: "no response in time: " + err.Error(),
		}
	}
	return result, err
}
