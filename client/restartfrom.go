package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// FromEvent keeps the history of the last execution up to and including the event with this ID, and continues from
// there with the current code. It is an option of Restart. An instance is restarted once from each event.
//
// The new instance has all results, fired timers and events up to that point. Activities and children that were running
// are started again, with new timeouts. Timers keep their due time and fire immediately if it has passed. Unanswered
// external events are raised again. Detached orchestrations are not started again.
//
// The event must be an input event, such as the result of an activity, or the last event that a turn or an input
// caused. The current code processes an input event again. Up to the event, the code sees the instance and execution
// IDs and random numbers of the original instance. If the current code decides differently on that history, the new
// instance is blocked. The history of the new instance starts with an ExecutionRestarted event that names the original
// instance, execution and event.
//
// FromEvent results in a *provider.FieldError for the field "from" if the event is another one. The error names the
// nearest valid events. It also results in a *provider.FieldError in these cases:
//
//   - WithDelay or another version is given.
//   - A child that was running has an ID that the code chose, and an instance with this ID exists. The error is also an
//     ErrAlreadyExists. Purge the child first.
//   - The compressed history exceeds 3 MiB. The error is also a provider.ErrTooLarge.
func FromEvent(id int64) StartOption { return func(o *startOptions) { o.from = &id } }

func (c *Client) restartFrom(ctx context.Context, in provider.Instance, from int64, opts []StartOption) (newID string, err error) {
	past, began, err := c.past(ctx, in, from)
	if err != nil {
		return "", fmt.Errorf("client: restart instance %q: %w", in.InstanceID, err)
	}

	key := digest("restart", in.InstanceID, in.StartID, in.ExecutionID, strconv.FormatInt(from, 10))
	as := []StartOption{WithInstanceID(restartID(in.InstanceID, key)), WithIdempotencyKey(key), WithVersion(began.Version), WithTags(past.Events[0].Tags)}
	as = append(as, opts...)
	switch o := startOptionsOf(as); {
	case o.version != began.Version:
		err = &provider.FieldError{
			Field: "version", Problem: fmt.Sprintf("must be %q, the version of the history", began.Version),
		}
	case o.delay != 0:
		err = &provider.FieldError{Field: "delay", Problem: "cannot be combined with from"}
	default:
		as = append(as, func(o *startOptions) { o.past = past })
		newID, err = c.Start(ctx, began.Name, nil, as...)
	}
	if errors.Is(err, provider.ErrTooLarge) {
		tooLong := &provider.FieldError{
			Field: fieldFrom, Problem: "cannot be this event: the history up to it is too large; choose an earlier " +
				"event or omit from",
		}
		err = fmt.Errorf("%w: %w", tooLong, err)
	}
	if err != nil {
		return newID, fmt.Errorf("client: restart instance %q from event %d: %w", in.InstanceID, from, err)
	}
	return newID, nil
}

// past reads the history that a restart takes over, and returns where the execution stood with it.
func (c *Client) past(ctx context.Context, in provider.Instance, from int64) (*provider.RestartSource, history.Summary, error) {
	events, err := c.wholeHistory(ctx, in)
	if err != nil {
		return nil, history.Summary{}, err
	}
	if err := history.CheckRestartPoint(events, from); err != nil {
		return nil, history.Summary{}, &provider.FieldError{Field: fieldFrom, Problem: "cannot be " + err.Error()}
	}

	past := &provider.RestartSource{ExecutionRef: history.ExecutionRef{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID}, Events: events[:from]}
	if err := c.fetchForeign(ctx, past); err != nil {
		return nil, history.Summary{}, err
	}
	state := history.NewState(history.TrackOpen, past.Events...)
	return past, state.Summary, c.checkChildren(ctx, past.ExecutionRef, state)
}

// wholeHistory reads the history of an instance's execution. Of one that is purged meanwhile it is not whole: then there is no such instance.
func (c *Client) wholeHistory(ctx context.Context, in provider.Instance) (events []history.Event, err error) {
	for e, err := range c.hub.ReadHistory(ctx, in.InstanceID, in.ExecutionID, 0) {
		if err != nil {
			return nil, err
		}
		if e.ID != int64(len(events)+1) {
			return nil, fmt.Errorf("event %d is followed by event %d, the instance is being purged: %w",
				len(events), e.ID, ErrNotFound)
		}
		events = append(events, e)
	}
	if len(events) == 0 || !events[len(events)-1].Kind.Terminal() {
		return nil, fmt.Errorf("history has no final event, the instance is being purged: %w", ErrNotFound)
	}
	return events, nil
}

// fetchForeign replaces references to documents of earlier executions by the documents: a purge of the old instance would leave none of them.
func (c *Client) fetchForeign(ctx context.Context, past *provider.RestartSource) (err error) {
	for i := range past.Events {
		past.Events[i].EachExternalData(func(_ string, _ int, data *history.Payload) {
			ref, refers := data.Reference()
			if !refers || err != nil || data.IsEncoded() {
				return
			}
			at, wrong := history.ParseDataLocation(ref.Ref)
			if wrong != nil || at.ExecutionID == past.ExecutionID {
				err = wrong
				return
			}
			doc, failed := c.hub.ReadDocument(ctx, past.InstanceID, ref)
			if failed != nil {
				err = fmt.Errorf("event %d: %w", past.Events[i].ID, failed)
				return
			}
			*data = ref.PayloadOf(doc)
		})
	}
	return err
}

// checkChildren returns an error where a child is still there that would be started once more under the id that the code gave it.
func (c *Client) checkChildren(ctx context.Context, of history.ExecutionRef, state *history.State) error {
	for o := range state.Pending() {
		if o.Kind != history.SubOrchestrationScheduled || of.IsDerivedChild(o.InstanceID) {
			continue
		}
		switch child, err := c.hub.ReadInstance(ctx, o.InstanceID); {
		case err == nil:
			problem := fmt.Sprintf("cannot be this event: child %q of event %d must be started again, but its ID is "+
				"in use; purge the child, or choose an event before %d or after the end of the child",
				o.InstanceID, o.ID, o.ID)
			return fmt.Errorf("%w: %w", &provider.FieldError{Field: fieldFrom, Problem: problem},
				provider.NewAlreadyExistsError(o.InstanceID, &child, ErrAlreadyExists))
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return nil
}
