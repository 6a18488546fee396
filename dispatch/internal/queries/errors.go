package queries

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/stack"
	"github.com/perdure/perdure/provider"
)

func refusal(
	q *provider.QueryRequest, code provider.QueryCode, message string, why *history.Failure,
) *provider.QueryError {
	return &provider.QueryError{InstanceID: q.InstanceID, Query: q.Name, Code: code, Message: message, Failure: why}
}

// replayError returns the error of a query of an instance whose replay failed.
func replayError(q *provider.QueryRequest, err error) error {
	why := execution.Diagnose(err)
	if why == nil {
		return fmt.Errorf("dispatch: query %q: instance %q: replay: %w", q.Name, q.InstanceID, err)
	}
	return refusal(q, provider.QueryBlocked, "the replay failed: "+why.Message, why)
}

func result(q *provider.QueryRequest, output *replay.QueryOutput, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, queryError(q, err)
	}
	switch f := output.Failure; {
	case f == nil:
		return output.Output, nil
	case output.BadInput:
		return nil, refusal(q, provider.QueryBadInput, f.Message, f)
	case output.TooLarge:
		return nil, refusal(q, provider.QueryResultTooLarge, f.Message, f)
	case f.Type == history.TypePanic:
		return nil, refusal(q, provider.QueryFailed, "the handler panicked: "+f.Message, f)
	default:
		return nil, refusal(q, provider.QueryFailed, "the handler failed: "+f.Message, f)
	}
}

// maxNames is the maximum number of handlers that an error lists. The response of a function has a size limit.
const maxNames = 100

func queryError(q *provider.QueryRequest, err error) error {
	if _, ok := errors.AsType[*replay.NotBegunError](err); ok {
		return refusal(q, provider.QueryNotStarted, "the instance has not run its first turn; try again later", nil)
	}
	if e, ok := errors.AsType[*replay.UnknownQueryError](err); ok {
		known, more := e.Known, ""
		if n := len(known) - maxNames; n > 0 {
			known, more = known[:maxNames], fmt.Sprintf(" and %d more", n)
		}
		r := refusal(q, provider.QueryHandlerNotFound,
			fmt.Sprintf("the code has not set this query handler so far; handlers: %q%s", known, more), nil)
		r.Known = known
		return r
	}
	if e, ok := errors.AsType[*replay.QueryMisuseError](err); ok {
		return refusal(q, provider.QueryNotReadOnly,
			"the handler must only read, but scheduled work or waited at "+stack.Where(e.Stack), nil)
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return refusal(q, provider.QueryHandlerTimedOut,
			fmt.Sprintf("the handler did not return within %v; it was at %s", e.Limit, stack.Where(e.Stack)), nil)
	}
	return fmt.Errorf("dispatch: query %q: instance %q: %w", q.Name, q.InstanceID, err)
}
