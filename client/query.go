package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// ErrNobodyToAsk says that the hub has no orchestrator function that a query could ask, as where a process polls the inbox: WithAsker names another
// that has the code.
var ErrNobodyToAsk = provider.ErrNobodyToAsk

// QueryError says why a query has no answer; its Code is one of the constants. One that timed out is a context.DeadlineExceeded.
type QueryError = provider.QueryError

// QueryCode is why a query has no answer.
type QueryCode = provider.QueryCode

// The codes of a QueryError.
const (
	QueryNotBegun       = provider.QueryNotBegun       // the code of the current execution has not run yet: ask later
	QueryUnknown        = provider.QueryUnknown        // the code has set no handler of this name, as far as it has come: Known are those it has
	QueryUnregistered   = provider.QueryUnregistered   // the build that was asked does not have the orchestration in its version
	QueryBlocked        = provider.QueryBlocked        // the code cannot be brought to where it stands: Failure is the diagnosis
	QueryBadInput       = provider.QueryBadInput       // the input does not fit what the handler takes: Failure says where
	QueryFailed         = provider.QueryFailed         // the handler returned an error, or panicked: Failure
	QueryMisused        = provider.QueryMisused        // the handler scheduled, waited, or decided something else: Message says where
	QueryHung           = provider.QueryHung           // the handler did not come back: Message says where it was
	QueryAnswerTooLarge = provider.QueryAnswerTooLarge // the answer is over perdure.MaxQueryAnswerBytes: Failure
	QueryTimedOut       = provider.QueryTimedOut       // there was no answer in time: the function is busy, or the history is long
	QueryDied           = provider.QueryDied           // the function that was asked died, or failed otherwise
	QueryUnsupported    = provider.QueryUnsupported    // the function that was asked is of a release before queries
)

// MaxQueryNameBytes is the limit of a query's name.
const MaxQueryNameBytes = provider.MaxQueryNameBytes

// QueryLimit is how long Query waits for an answer at most.
const QueryLimit = 25 * time.Second

// WithAsker sets who answers queries: a dispatch.Orchestrator of this process, which has the code, or the Asker of a lambdahandler.Function.
// The default, and nil, is the hub where it is a provider.Asker, as one of package dynamo is, which invokes the orchestrator function.
func WithAsker(a provider.Asker) Option { return func(c *Client) { c.asker = a } }

// Query asks an instance's code something, and returns what it answers, as JSON: the code has set a handler for queries of that name with
// perdure.SetQueryHandler. The input is encoded as JSON; a json.RawMessage is used as it is.
//
// The answer is of the state that the instance's committed turns have led to, as of some moment after the call has begun, whether it runs, is paused, is
// blocked or is over. Nothing of the instance is written, which does not know that it was asked; of a long history copies of its parts may be, for who
// reads it next. Each query replays the instance in the orchestrator function, beside its turns and within the concurrency that they have: it is for who looks, not for polling by thousands.
//
// It returns a *QueryError when there is no answer, ErrNotFound when there is no such instance, ErrNobodyToAsk when
// there is no function to ask, and after QueryLimit, or when ctx's deadline is over before, a QueryError with QueryTimedOut. It is
// always safe to ask again.
func (c *Client) Query(ctx context.Context, instanceID, query string, input any) (json.RawMessage, error) {
	answer, err := c.query(ctx, instanceID, query, input)
	if err != nil {
		return nil, fmt.Errorf("client: query: %w", err)
	}
	return answer, nil
}

func (c *Client) query(ctx context.Context, instanceID, query string, input any) (json.RawMessage, error) {
	if err := checkInstanceID(instanceID); err != nil {
		return nil, err
	}
	if err := checkText("query", query, 1, MaxQueryNameBytes); err != nil {
		return nil, err
	}
	doc, err := encodePayload(fieldInput, input, MaxInputBytes)
	if err != nil {
		return nil, err
	}
	asker := c.asker
	if asker == nil {
		asker, _ = offered.By[provider.Asker](c.hub)
	}
	if asker == nil {
		return nil, ErrNobodyToAsk
	}

	limited, stop := context.WithTimeout(ctx, QueryLimit)
	defer stop()
	answer, err := asker.Ask(limited, provider.Question{InstanceID: instanceID, Name: query, Input: documentOf(doc)})
	if _, told := errors.AsType[*QueryError](err); err != nil && !told && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return nil, &QueryError{InstanceID: instanceID, Query: query, Code: QueryTimedOut, Message: "there was no answer in time: " + err.Error()}
	}
	return answer, err
}

// documentOf is the document of a payload that is inline.
func documentOf(p history.Payload) json.RawMessage {
	doc, _ := p.Document()
	return doc
}
