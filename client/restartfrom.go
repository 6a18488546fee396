package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// FromEvent has a restart take over the history of the last execution up to the event with this id, that one included, and go on from there with
// the code of today (R30). What had ended by then is not done again: results of activities and children, timers that have fired, events that have
// arrived, and what the code recorded. What was under way is done anew: activities and children are started again, with their time limits from
// now on; timers keep the time at which they are due, so what is due by now fires at once. External events that had not been answered are raised
// again. Detached orchestrations are not started again.
//
// The event is one that came from outside, such as the result of an activity, which the code of today takes anew: what the code of then has made of it
// is left behind. Or it is the last that a turn, or an input in it, has caused. Another is a provider.FieldError for the field from, which names the
// nearest. So is one with a delay or another version; a child that was under way, was given its id and is still there, which must be purged before
// (ErrAlreadyExists, too); and a history of which more than 3 MiB are to be written, compressed (provider.ErrTooLarge, too).
//
// Until that event the code is told the ids of the instance that it was, and draws the numbers that it drew then. Code that would decide
// something else on that history blocks the new instance, with the diagnosis. The event ExecutionRestarted in its history has the instance, the
// execution and the event that it came from.
//
// It is an option of Restart alone. One end is restarted once from each event.
func FromEvent(id int64) StartOption { return func(o *startOptions) { o.from = &id } }

func (c *Client) restartFrom(ctx context.Context, in provider.Instance, from int64, opts []StartOption) (newID string, err error) {
	past, began, err := c.past(ctx, in, from)
	if err != nil {
		return "", fmt.Errorf("client: restart of instance %q: %w", in.InstanceID, err)
	}

	key := digest("restart", in.InstanceID, in.StartID, in.ExecutionID, strconv.FormatInt(from, 10))
	as := []StartOption{WithInstanceID(restartID(in.InstanceID, key)), WithIdempotencyKey(key), WithVersion(began.Version), WithTags(past.Events[0].Tags)}
	as = append(as, opts...)
	switch o := startOptionsOf(as); {
	case o.version != began.Version:
		err = &provider.FieldError{Field: "version", Problem: fmt.Sprintf("must be %q, with which the history was made that is taken over", began.Version)}
	case o.delay != 0:
		err = &provider.FieldError{Field: "delay", Problem: "is for a restart from the beginning"}
	default:
		as = append(as, func(o *startOptions) { o.past = past })
		newID, err = c.Start(ctx, began.Name, nil, as...)
	}
	if errors.Is(err, provider.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", &provider.FieldError{Field: fieldFrom, Problem: "cannot be there: the history up to it is more than is written at once; an earlier event may do, or the beginning"}, err)
	}
	if err != nil {
		return newID, fmt.Errorf("client: restart of instance %q from event %d: %w", in.InstanceID, from, err)
	}
	return newID, nil
}

// past reads the history that a restart takes over, and returns where the execution stood with it.
func (c *Client) past(ctx context.Context, in provider.Instance, from int64) (*provider.Past, history.Standing, error) {
	events, err := c.wholeHistory(ctx, in)
	if err != nil {
		return nil, history.Standing{}, err
	}
	if err := history.CheckCut(events, from); err != nil {
		return nil, history.Standing{}, &provider.FieldError{Field: fieldFrom, Problem: "cannot be " + err.Error()}
	}

	past := &provider.Past{Owner: history.Owner{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID}, Events: events[:from]}
	if err := c.fetchForeign(ctx, past); err != nil {
		return nil, history.Standing{}, err
	}
	state := history.NewState(history.KeepOpen, past.Events...)
	return past, state.Standing, c.checkChildren(ctx, past.Owner, state)
}

// wholeHistory reads the history of an instance's execution. Of one that is purged meanwhile it is not whole: then there is no such instance.
func (c *Client) wholeHistory(ctx context.Context, in provider.Instance) (events []history.Event, err error) {
	for e, err := range c.hub.ReadHistory(ctx, in.InstanceID, in.ExecutionID, 0) {
		if err != nil {
			return nil, err
		}
		if e.ID != int64(len(events)+1) {
			return nil, fmt.Errorf("event %d is followed by %d, it is being purged: %w", len(events), e.ID, ErrNotFound)
		}
		events = append(events, e)
	}
	if len(events) == 0 || !events[len(events)-1].Kind.Terminal() {
		return nil, fmt.Errorf("its history has no end, it is being purged: %w", ErrNotFound)
	}
	return events, nil
}

// fetchForeign replaces references to documents of earlier executions by the documents: a purge of the old instance would leave none of them.
func (c *Client) fetchForeign(ctx context.Context, past *provider.Past) (err error) {
	for i := range past.Events {
		past.Events[i].Raised(func(_ string, _ int, data *history.Payload) {
			ref, refers := data.Reference()
			if !refers || err != nil || data.IsSealed() {
				return
			}
			at, wrong := history.ParsePlace(ref.Ref)
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
func (c *Client) checkChildren(ctx context.Context, of history.Owner, state *history.State) error {
	for o := range state.Pending() {
		if o.Kind != history.SubOrchestrationScheduled || of.IsDerivedChild(o.InstanceID) {
			continue
		}
		switch child, err := c.hub.ReadInstance(ctx, o.InstanceID); {
		case err == nil:
			return fmt.Errorf("%w: %w", &provider.FieldError{
				Field: fieldFrom, Problem: fmt.Sprintf("cannot be there: child %q of event %d was under way then and would be started again, but its id is in use: purge it, or restart from before that event or from behind its end", o.InstanceID, o.ID),
			}, provider.NewAlreadyExistsError(o.InstanceID, &child, ErrAlreadyExists))
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return nil
}
