package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// HistoryOption is an option of History.
type HistoryOption func(*historyOptions)

type historyOptions struct {
	executionID string
	after       int64
}

// maxExecutionIDBytes is longer than any execution ID.
const maxExecutionIDBytes = 64

// WithExecutionID selects the current or an earlier execution of the instance by its ID. The default is the current
// execution.
func WithExecutionID(executionID string) HistoryOption {
	return func(o *historyOptions) { o.executionID = executionID }
}

// AfterEvent skips the events up to and including the event with this ID.
func AfterEvent(eventID int64) HistoryOption { return func(o *historyOptions) { o.after = eventID } }

// History yields the events of an execution of an instance in order, with strongly consistent reads. The default is the
// current execution. Encoded payloads are decoded if the client has their codec. Use Payload for payloads that are in
// the payload store.
//
// The iterator ends with the first error. The error is ErrNotFound if the instance or the execution does not exist or
// is being purged.
func (c *Client) History(
	ctx context.Context, instanceID string, opts ...HistoryOption,
) iter.Seq2[history.Event, error] {
	o := optionsOf(opts)
	return func(yield func(history.Event, error) bool) {
		of, err := o.of(instanceID)
		if err != nil {
			yield(history.Event{}, fmt.Errorf("client: history: %w", err))
			return
		}
		for e, err := range c.ops.Events(ctx, of, o.after) {
			if err != nil {
				yield(history.Event{}, fmt.Errorf("client: history: instance %q: %w", instanceID, err))
				return
			}
			c.hub.DecodeEvent(ctx, instanceID, &e)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// of returns the execution that the options select. Without an execution ID, it is the current one.
func (o historyOptions) of(instanceID string) (of history.ExecutionRef, err error) {
	of = history.ExecutionRef{InstanceID: instanceID, ExecutionID: o.executionID}
	if o.after < 0 {
		return of, &provider.FieldError{Field: "after", Problem: fmt.Sprintf("must not be negative, is %d", o.after)}
	}
	if err := inputcheck.InstanceID(instanceID); err != nil || o.executionID == "" {
		return of, err
	}
	return of, inputcheck.Text("execution", o.executionID, 1, maxExecutionIDBytes)
}
