package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/following"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// TailReader is a Backend that reads new events of an execution without its earlier ones. Follow polls any other
// Backend with ReadSettled, and reads the whole history after each commit.
type TailReader interface {
	// ReadTail yields the events of an execution after a position in order, and advances the position before it yields
	// an event. It yields nothing if there are no new events. The last commits may be missing for a moment, but only if
	// the position has a Segment. The iterator ends with the first error, which is ErrNotFound if the instance does not
	// have the execution, or if the execution is deleted.
	ReadTail(ctx context.Context, instanceID, executionID string, at *provider.Tail) iter.Seq2[history.Event, error]
}

// WithPollInterval sets the longest time between two polls of Follow. The default is one second. History and clients of
// Dial ignore the option.
func WithPollInterval(longest time.Duration) HistoryOption {
	return func(o *historyOptions) { o.pollInterval = longest }
}

// Follow yields the events of an instance in order: first the existing events, then each new event within a second of
// its commit. It starts with the current execution, and continues with the executions that follow it. It ends after the
// terminal event of the instance. It yields no event twice and omits none. Payloads are those of History.
//
// To resume, pass WithExecutionID and AfterEvent with the execution and the ID of the last event. After an event of the
// kind OrchestrationContinuedAsNew, the events belong to the execution with its ExecutionID.
//
// Follow polls: 20 ms after an event, then less often, up to WithPollInterval. Over HTTP, the API holds each poll for
// up to 20 seconds until there are events. Follow repeats polls that fail for a time,
// such as those of a throttled hub, with a delay of up to 30 seconds until ctx ends. Another error is the last value:
// the error of ctx, ErrNotFound if the instance or the execution does not exist or is purged, or a *provider.FieldError
// if an option is invalid or the execution does not have the event of AfterEvent.
func (c *Client) Follow(
	ctx context.Context, instanceID string, opts ...HistoryOption,
) iter.Seq2[history.Event, error] {
	o := optionsOf(opts)
	return func(yield func(history.Event, error) bool) {
		err := c.follow(ctx, instanceID, o, func(e history.Event) bool { return yield(e, nil) })
		if err != nil {
			yield(history.Event{}, fmt.Errorf("client: follow: %w", hub.WaitError(ctx, instanceID, err)))
		}
	}
}

func (c *Client) follow(
	ctx context.Context, instanceID string, o historyOptions, yield func(history.Event) bool,
) error {
	if o.pollInterval < 0 {
		return &provider.FieldError{
			Field: "pollInterval", Problem: fmt.Sprintf("must not be negative, is %s", o.pollInterval),
		}
	}
	of, err := o.of(instanceID)
	if err == nil && of.ExecutionID == "" {
		of.ExecutionID, err = c.ops.CurrentExecution(ctx, instanceID)
	}
	if err != nil {
		return err
	}
	longest := cmp.Or(o.pollInterval, hub.MaxDelay)
	if c.remote {
		longest = hub.FirstDelay // the API waits
	}
	return following.New(c.hub, c.ops.CurrentExecution, of, o.after, longest).Run(ctx, yield)
}
