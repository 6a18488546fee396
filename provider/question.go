package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// MaxQueryNameBytes is the limit of a query's name.
const MaxQueryNameBytes = 256

// Question is a query of an instance. Its JSON is a format: function and client may be of different releases.
type Question struct {
	InstanceID string `json:"instanceId"`
	// Name is that of the query, Input what its handler is given; empty is no input.
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Asker asks the code of instances. It is safe for concurrent use. A dispatch.Orchestrator is one, which has the code; a provider may be
// one that reaches the processes which have it.
type Asker interface {
	// Ask has the code of an instance answer, from where its committed history has brought it to, as of some moment after the
	// call has begun. It changes nothing, so it may be repeated. It returns ErrNotFound when there is no such instance,
	// ErrCorrupt when its history cannot be read, ErrNobodyToAsk when no code can be reached, and a *QueryError when
	// there is no answer.
	Ask(ctx context.Context, q Question) (answer json.RawMessage, err error)
}

// ErrNobodyToAsk says that the code of the hub's orchestrations cannot be reached from where it is to be asked.
var ErrNobodyToAsk = errors.New("hub has no orchestrator function to query")

// QueryCode is why a query has no answer. Codes only grow.
type QueryCode string

// The codes of a QueryError.
const (
	QueryNotBegun       QueryCode = "not_begun"        // the code of the current execution has not run yet: ask later
	QueryUnknown        QueryCode = "unknown_query"    // the code has set no handler of this name, as far as it has come: Known are those it has
	QueryUnregistered   QueryCode = "unregistered"     // the build that was asked does not have the orchestration in its version
	QueryBlocked        QueryCode = "blocked"          // the code cannot be brought to where it stands: Failure is the diagnosis
	QueryBadInput       QueryCode = "bad_input"        // the input does not fit what the handler takes: Failure says where
	QueryFailed         QueryCode = "failed"           // the handler returned an error, or panicked: Failure
	QueryMisused        QueryCode = "misused"          // the handler scheduled, waited, or decided something else: Message says where
	QueryHung           QueryCode = "hung"             // the handler did not come back: Message says where it was
	QueryAnswerTooLarge QueryCode = "answer_too_large" // the answer is over perdure.MaxQueryAnswerBytes: Failure
	QueryTimedOut       QueryCode = "timed_out"        // there was no answer in time: the function is busy, or the history is long
	QueryDied           QueryCode = "died"             // the function that was asked died, or failed otherwise
	QueryUnsupported    QueryCode = "unsupported"      // the function that was asked is of a release before queries
)

// QueryError says why a query has no answer. Nothing has happened to the instance.
type QueryError struct {
	InstanceID string    `json:"instanceId"`
	Query      string    `json:"query"`
	Code       QueryCode `json:"code"`
	Message    string    `json:"message"`
	// Known are the queries that the code has set handlers for, in their order, where it has none for this one: the first 100.
	Known []string `json:"known,omitempty"`
	// Failure is what the handler failed with, or the diagnosis of code that cannot go on; nil elsewhere.
	Failure *history.Failure `json:"failure,omitempty"`
}

// Error implements error.
func (e *QueryError) Error() string {
	return fmt.Sprintf("instance %q: query %q: %s", e.InstanceID, e.Query, e.Message)
}

// As finds the details that the handler's error came with: perdure.DetailsOf asks for them.
func (e *QueryError) As(target any) bool { return errdetails.As(target, nil, e.Failure) }

// Is makes one that timed out a context.DeadlineExceeded.
func (e *QueryError) Is(target error) bool {
	return e.Code == QueryTimedOut && target == context.DeadlineExceeded
}
