package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/replay/panics"
)

// QueryHandler responds to a query from the current state of the code.
type QueryHandler func(input json.RawMessage) QueryOutput

// QueryOutput is the response of a handler.
type QueryOutput struct {
	Output json.RawMessage
	// Failure is set if there is no output. BadInput means that the input of the query is invalid. TooLarge means that
	// the output is too large.
	Failure            *history.Failure
	BadInput, TooLarge bool
}

// SetQueryHandler registers the handler for queries with a name, from now on. The history does not record the call.
func (u Unscoped) SetQueryHandler(name string, handler QueryHandler) {
	u.x.scheduler.Enter()
	if u.x.queries == nil {
		u.x.queries = queryHandlers{}
	}
	u.x.queries[name] = handler
}

// NotBegunError is returned for a query of an execution whose code has not run yet.
type NotBegunError struct{ InstanceID string }

func (e *NotBegunError) Error() string {
	return fmt.Sprintf("instance %q: the code has not run yet", e.InstanceID)
}

// UnknownQueryError is returned for a query for which the code has not set a handler yet.
type UnknownQueryError struct {
	InstanceID, Query string
	Known             []string // sorted
}

func (e *UnknownQueryError) Error() string {
	return fmt.Sprintf("instance %q: query %q has no handler; handlers exist for %q", e.InstanceID, e.Query, e.Known)
}

// Query runs the query handler after a replay. The response may be a failure of the handler.
//
// The handler makes no decisions, but it may change variables of the code. After Query, only Close may follow. Query
// returns these errors: *NotBegunError, *UnknownQueryError, *QueryMisuseError, *BlockedOutsideError.
func (i *Instance) Query(name string, input json.RawMessage) (QueryOutput, error) {
	if !i.acquire() {
		return QueryOutput{}, fmt.Errorf(
			"replay: instance %q: queried while a turn runs, or after the instance was abandoned",
			i.x.options.InstanceID)
	}
	go i.query(name, input)

	r := i.awaitTurn()
	return r.output, r.err
}

// query runs a query on its own goroutine, because the handler may never return and may end its goroutine.
func (i *Instance) query(name string, input json.RawMessage) {
	goroutine.ReserveStack()
	i.x.scheduler.Gate().StartQuery()
	i.x.scheduler.Label()

	var r result
	returned := false
	defer func() {
		if !returned {
			r.output.Failure = panics.HandlerFailure(recover())
		}
		i.x.scheduler.Gate().EndTurn()
		if misuse := i.x.scheduler.Gate().Misuse(); misuse != nil {
			r.err = misuse
		}
		if i.release() {
			i.unwind()
		}
		i.done <- r
	}()

	var handler QueryHandler
	if !i.x.lifecycle.ran {
		r.err = &NotBegunError{i.x.options.InstanceID}
	} else if handler, r.err = i.x.queries.find(i.x.options.InstanceID, name); r.err == nil {
		r.output = handler(input)
	}
	returned = true
}

// queryHandlers are the query handlers of an execution, by the names of queries.
type queryHandlers map[string]QueryHandler

func (h queryHandlers) find(instanceID, name string) (QueryHandler, error) {
	handler := h[name]
	if handler == nil {
		return nil, &UnknownQueryError{instanceID, name, slices.Sorted(maps.Keys(h))}
	}
	return handler, nil
}
