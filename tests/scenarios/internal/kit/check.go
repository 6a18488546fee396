package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// Returns checks that the instance completed with this output.
func Returns(want any) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		doc, err := json.Marshal(want)
		if err != nil {
			return err
		}
		if s.Status != client.StatusCompleted || string(s.Output) != string(doc) {
			return fmt.Errorf("%s with %s, failure %+v; want %s", s.Status, s.Output, s.Failure, doc)
		}
		return nil
	}
}

// Fails checks that the instance failed with an error of this type, whose message contains all words.
func Fails(errorType string, words ...string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if s.Status != client.StatusFailed || s.Failure == nil || s.Failure.Type != errorType {
			return fmt.Errorf("%s with %s, failure %+v; want a failure of type %s", s.Status, s.Output, s.Failure,
				errorType)
		}
		for _, w := range words {
			if !strings.Contains(s.Failure.Message, w) {
				return fmt.Errorf("failure %q does not contain %q", s.Failure.Message, w)
			}
		}
		return nil
	}
}

// All runs checks in order and returns the first error.
func All(checks ...Check) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for _, check := range checks {
			if err := check(ctx, c, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// EventsOf returns the events of a kind in the history of an instance's current execution.
func EventsOf(ctx context.Context, c *client.Client, id string, kind history.Kind) (found []history.Event, err error) {
	for e, err := range c.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found, nil
}

// Executions checks that the instance has had n executions.
func Executions(n int64) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if s.ExecutionNumber != n {
			return fmt.Errorf("in execution %d, want %d", s.ExecutionNumber, n)
		}
		return nil
	}
}

// CustomStatus checks the last custom status.
func CustomStatus(want string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if string(s.CustomStatus) != want {
			return fmt.Errorf("custom status %s, want %s", s.CustomStatus, want)
		}
		return nil
	}
}

// OtherCancelled checks that an instance whose ID has this suffix was cancelled for this reason, or did not start.
func OtherCancelled(suffix, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		below, err := c.Wait(ctx, s.InstanceID+suffix)
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if below.Status != client.StatusCancelled || below.Failure.Reason != reason {
			return fmt.Errorf("child is %s: %+v, want cancelled: %s", below.Status, below.Failure, reason)
		}
		return nil
	}
}

// OtherReturns checks that an instance whose ID has this suffix completed with this output.
func OtherReturns(suffix string, want any) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		other, err := c.Wait(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		return Returns(want)(ctx, c, other)
	}
}

// HasCause checks that the failure has a cause of this type.
func HasCause(errorType string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		for f := s.Failure; f != nil; f = f.Cause {
			if f.Type == errorType {
				return nil
			}
		}
		return fmt.Errorf("the failure %+v has no cause of type %s", s.Failure, errorType)
	}
}

// CancelledBecause checks that tasks with this name were cancelled, all of them for this reason.
func CancelledBecause(name, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return CancelledBecauseIn(ctx, c, s, "", name, reason)
	}
}

// FirstExecution returns the ID of the first execution of an instance.
func FirstExecution(ctx context.Context, c *client.Client, instanceID string) (first string, err error) {
	for x, err := range c.Executions(ctx, instanceID) {
		if err != nil {
			return "", err
		}
		first = x.ExecutionID
	}
	return first, nil
}

// CancelledBecauseIn is CancelledBecause for an execution. An empty ID selects the current one.
func CancelledBecauseIn(ctx context.Context, c *client.Client, s client.Status, execution, name, reason string) error {
	found, err := client.Collect(c.Cancellations(ctx, s.InstanceID, execution))
	if err != nil {
		return err
	}
	n := 0
	for _, x := range found {
		if x.Name != name {
			continue
		}
		if n++; x.Reason != reason {
			return fmt.Errorf("%s #%d was cancelled for %s, want %s", name, x.ID, x.Reason, reason)
		}
	}
	if n == 0 {
		return fmt.Errorf("no task %s was cancelled: %+v", name, found)
	}
	return nil
}
