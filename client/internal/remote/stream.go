package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

const (
	opStream = "streamHistory"
	// streamProblem is the event with which the API ends a stream that fails after its header.
	streamProblem = "problem"
)

// CurrentExecution returns the ID of the current execution of an instance.
func (h *Hub) CurrentExecution(ctx context.Context, instanceID string) (executionID string, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return "", err
	}
	x, err := apiclient.Get[provider.Execution](ctx, h.api, apiclient.Call{
		Operation: opGet, Path: []string{instanceID}, InstanceID: instanceID, Query: notPending(),
	})
	return x.ExecutionID, err
}

// Tail reads new events of instances through an API. It is a client.TailReader.
type Tail struct{ api *apiclient.Client }

// NewTail returns the reader of new events of a hub behind an API.
func NewTail(c *apiclient.Client) *Tail { return &Tail{c} }

// ReadTail yields the events of an execution after a position with a long poll. It yields nothing if there are no
// events until the end of the poll.
func (t *Tail) ReadTail(
	ctx context.Context, instanceID, executionID string, at *provider.Tail,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		resp, err := t.api.Do(ctx, apiclient.Call{
			Operation: opStream, Path: []string{instanceID}, InstanceID: instanceID, Accept: "text/event-stream",
			Query: url.Values{
				"wait":        {longestWait.String()},
				"lastEventId": {executionID + "." + strconv.FormatInt(at.Event, 10)},
			},
		})
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		for message := range bytes.SplitSeq(resp.Body, []byte("\n\n")) {
			e, found, err := eventOf(instanceID, message)
			if err != nil {
				yield(history.Event{}, err)
				return
			}
			if !found {
				continue
			}
			if e.ID != at.Event+1 {
				yield(history.Event{}, apiclient.NewError(opStream, instanceID, true,
					fmt.Errorf("event #%d follows #%d", e.ID, at.Event)))
				return
			}
			at.Event = e.ID
			if !yield(e, nil) || e.Kind == history.OrchestrationContinuedAsNew {
				return // the events that follow belong to the next execution
			}
		}
	}
}

// eventOf returns the event of the history in a message of a stream. Other messages, such as comments and the end, have
// none.
func eventOf(instanceID string, message []byte) (e history.Event, found bool, err error) {
	var kind string
	var data []byte
	for line := range bytes.SplitSeq(message, []byte("\n")) {
		if v, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			kind = string(v)
		} else if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = v
		}
	}
	if kind == streamProblem {
		var p apiwire.Problem
		if err := json.Unmarshal(data, &p); err != nil {
			return e, false, apiclient.NewError(opStream, instanceID, true, fmt.Errorf("decode problem: %w", err))
		}
		return e, false, apiclient.ErrorOf(instanceID, opStream, p.Code, p.Detail, p.Retryable)
	}
	if kind == "" || kind[0] >= 'a' { // no kind of an event starts with a lower-case letter
		return e, false, nil
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, false, apiclient.NewError(opStream, instanceID, true, fmt.Errorf("decode event: %w", err))
	}
	return e, true, nil
}
