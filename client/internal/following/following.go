// Package following follows the history of an instance: it reads the existing events, then polls for new ones.
package following

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Delays after polls that fail for a time.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// pollsPerCheck is the number of polls without an event after which the instance itself is read. A purge of a damaged
// history is not visible after its last segment.
const pollsPerCheck = 60

// CurrentExecution returns the ID of the current execution of an instance.
type CurrentExecution func(ctx context.Context, instanceID string) (executionID string, err error)

// Follower follows one instance. It is not safe for concurrent use.
type Follower struct {
	hub        *hub.Hub
	current    CurrentExecution
	instanceID string
	longest    time.Duration // between two polls

	executionID string // the execution to read
	at          provider.Tail
	resumedFrom int64 // the event before the first one to yield; 0 once it was read
	retry       time.Duration
	failed      bool // the last poll failed, and may be repeated
	idle        int  // polls in a row without an event
	replaced    bool // the last check of the instance found another execution

	next func() (history.Event, error, bool) // the rest of the batch that the last poll began; nil without one
	stop func()
}

// New returns a follower that starts after an event of an execution.
func New(
	h *hub.Hub, current CurrentExecution, from history.ExecutionRef, after int64, longest time.Duration,
) *Follower {
	f := &Follower{
		hub: h, current: current, instanceID: from.InstanceID, executionID: from.ExecutionID, longest: longest, resumedFrom: after,
		retry: firstRetry, stop: func() {},
	}
	// the event itself is read again, because it decides whether there are more
	f.at.Event = max(after-1, 0)
	return f
}

// Run yields events until the instance has ended, or until yield returns false. Then it returns nil.
func (f *Follower) Run(ctx context.Context, yield func(history.Event) bool) error {
	defer func() { f.stop() }()
	for {
		var e history.Event
		err := f.hub.WaitUntilEvery(ctx, f.instanceID, f.longest, func(context.Context) (found bool, err error) {
			e, found, err = f.poll(ctx)
			return found, err
		})
		for found := err == nil; found; e, found, err = f.following(ctx) {
			if more, failed := f.take(ctx, &e, yield); failed != nil || !more {
				return failed
			}
		}
		if err != nil {
			return err
		}
	}
}

// take yields an event, and reports whether there can be more. After a continue-as-new it changes the execution.
func (f *Follower) take(ctx context.Context, e *history.Event, yield func(history.Event) bool) (more bool, err error) {
	switch from := f.resumedFrom; {
	case from > 0 && e.ID != from:
		return false, f.missing(from)
	case from > 0:
		f.resumedFrom = 0
	default:
		f.hub.DecodeEvent(ctx, f.instanceID, e)
		if !yield(*e) {
			return false, nil
		}
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		f.stop()
		f.next = nil
		f.executionID, f.at = e.ExecutionID, provider.Tail{}
		return true, nil
	}
	return !e.Kind.Terminal(), nil
}

func (f *Follower) missing(eventID int64) error {
	return &provider.FieldError{
		Field: "after", Problem: fmt.Sprintf("is %d, but execution %s has no such event", eventID, f.executionID),
	}
}

// poll returns the first new event, and leaves the rest of the batch for following.
func (f *Follower) poll(ctx context.Context) (e history.Event, found bool, err error) {
	f.stop()
	f.next, f.stop = iter.Pull2(f.tail(ctx))
	e, found, err = f.following(ctx)
	if err != nil || found || f.failed {
		return e, found, err
	}
	f.retry = firstRetry
	if f.resumedFrom > 0 {
		return e, false, f.missing(f.resumedFrom)
	}
	if f.idle++; f.idle%pollsPerCheck == 0 {
		err = f.check(ctx)
	}
	return e, false, err
}

// check returns an error if the instance does not exist, or has had another execution since the check before. The event
// of a continue-as-new would have been read since.
func (f *Follower) check(ctx context.Context) error {
	executionID, err := f.current(ctx, f.instanceID)
	if err == nil && executionID == f.executionID {
		f.replaced = false
		return nil
	}
	if err == nil && !f.replaced {
		f.replaced = true
		return nil
	}
	if err == nil {
		err = provider.ErrNotFound
	}
	return f.permanent(ctx, err)
}

// following returns the next event of the batch. It finds none after an error that may not persist, and then has
// waited.
func (f *Follower) following(ctx context.Context) (e history.Event, found bool, err error) {
	f.failed = false
	if f.next == nil {
		return e, false, nil
	}
	e, err, found = f.next()
	if err == nil && found {
		f.idle, f.replaced, f.retry = 0, false, firstRetry
		return e, true, nil
	}
	f.next = nil
	if err != nil {
		err = f.permanent(ctx, err)
	}
	return e, false, err
}

// permanent returns an error that another poll would not change. After any other error it waits and returns nil.
func (f *Follower) permanent(ctx context.Context, err error) error {
	var failed *provider.Error
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return fmt.Errorf("instance %q: execution %s is missing or was deleted: %w", f.instanceID, f.executionID, err)
	case !errors.As(err, &failed) || !failed.Retryable || ctx.Err() != nil:
		return fmt.Errorf("instance %q: %w", f.instanceID, err)
	}
	delay := f.retry
	f.failed, f.retry = true, min(2*f.retry, lastRetry)
	return f.hub.Sleep(ctx, hub.Jitter(delay))
}

// tail returns the events after the position.
func (f *Follower) tail(ctx context.Context) iter.Seq2[history.Event, error] {
	if t := f.hub.TailReader; t != nil {
		return t.ReadTail(ctx, f.instanceID, f.executionID, &f.at)
	}
	return func(yield func(history.Event, error) bool) {
		s, err := f.hub.ReadSettled(ctx, f.executionID, f.at.Segment)
		switch {
		case err == nil && s.Deleted:
			err = provider.ErrNotFound
		case err == nil && s.Next == f.at.Segment && s.Next > 0:
			return // no commit since the last read
		}
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		for e, err := range f.hub.ReadHistory(ctx, f.instanceID, f.executionID, f.at.Event) {
			if err == nil {
				f.at.Event = e.ID
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		f.at.Segment = s.Next
	}
}
