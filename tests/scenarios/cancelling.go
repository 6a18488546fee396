package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func cancelling(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "CancelledInstanceRunsCompensation", Register: body(guardedTrip), Input: []string{"cabin", "ferry"},
			Drive: cancelsWhen("waiting"),
			Check: all(cancelled, customStatus(`"gave back ferry, gave back cabin"`), decided(watchName, "requested")),
			Calm:  ended(watchName),
		},
		{
			Name: "CompensationThatFailsIsAFailure", Register: body(guardedTrip), Input: []string{"cabin", stuck},
			Drive: cancelsWhen("waiting"),
			Check: fails("ActivityError", "cannot be given back", "cancelled (requested)"),
		},
		{
			Name: "CancelIsIgnored", Register: body(stubborn), Drive: cancelsWhen("waiting"),
			Check: gives("went on all the same"),
		},
		{
			Name: "CancelTree", Register: body(tree), Input: 3, Drive: cancelsWhen("leaf is waiting"),
			Check: all(cancelled, allBelow(3)),
		},
		{
			Name: "LosingChildIsCancelled", Register: body(impatient), Input: tick,
			Check: all(gives("gave up"), cancelledBeside("/c", "select_loser")),
		},
		{
			Name: "TimedOutScope", Register: body(hurried), Input: tick,
			Check: all(gives("timeout: true true, then 7"), cancelledBeside("/c", "timeout")),
		},
		{
			Name: "CancelDelayedStart", Register: body(waits), Start: []client.StartOption{client.WithDelay(60 * tick)},
			Drive: cancels,
			Check: cancelled,
		},
		{
			Name: "LongTimerOfACancelledInstance", Register: body(sleeps), Input: 200 * tick, Virtual: true,
			Drive: cancelsLater,
			Check: cancelled,
		},
	}
}

// because are the words of whoever cancels.
const because = "changed our mind"

// cancelled: the instance ended so, because a client asked for it.
func cancelled(_ context.Context, _ *client.Client, s client.Status) error {
	_, err := client.Result[any](s)
	var c *perdure.CancelledError
	if s.Status != client.StatusCancelled || !errors.As(err, &c) || c.Reason != perdure.ReasonRequested ||
		c.Message != because {
		return fmt.Errorf("%s, %w; want it cancelled (requested): %s", s.Status, err, because)
	}
	return nil
}

func cancels(ctx context.Context, w World, id string) error {
	return w.Client.Cancel(ctx, id, because)
}

// cancelsWhen cancels once the custom status is this, twice, as clients do that had no answer.
func cancelsWhen(status string) func(ctx context.Context, w World, id string) error {
	return func(ctx context.Context, w World, id string) error {
		if err := w.untilStatus(ctx, id, status); err != nil {
			return err
		}
		if err := cancels(ctx, w, id); err != nil {
			return err
		}
		if err := cancels(ctx, w, id); !errors.Is(err, client.ErrEnded) {
			return err
		}
		return nil
	}
}

func cancelsLater(ctx context.Context, w World, id string) error {
	w.Pass(100 * w.Tick)
	return cancels(ctx, w, id)
}

// stuck cannot be given back.
const stuck = "non-refundable"

// guardedTrip reserves all, and waits while an activity is at work; when that ends in an error, it gives back what it
// has, the latest first.
//
//perdure:ignore unawaited what becomes of it is what the scenario shows
func guardedTrip(ctx *perdure.OrchestrationContext, items []string) (_ struct{}, err error) {
	var reserved, log []string
	defer func() {
		if err == nil {
			return
		}
		safe := perdure.WithoutCancel(ctx)
		for _, item := range slices.Backward(reserved) {
			done, undoErr := perdure.CallActivity(safe, undo, item).Await(safe)
			if log = append(log, done); undoErr != nil {
				err = errors.Join(err, undoErr)
			}
		}
		ctx.SetCustomStatus(strings.Join(log, ", "))
	}()
	for _, item := range items {
		if _, err := perdure.CallActivity(ctx, reserve, item).Await(ctx); err != nil {
			return struct{}{}, err
		}
		reserved = append(reserved, item)
	}
	perdure.CallActivity(ctx, watch, struct{}{})
	_, err = waits(ctx, struct{}{})
	return struct{}{}, err
}

// StuckError is what cannot be undone.
type StuckError struct{ Item string }

func (e *StuckError) Error() string { return e.Item + " cannot be given back" }

func stubborn(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	if _, err := waits(ctx, struct{}{}); err == nil {
		return "", errors.New("it was not cancelled")
	}
	return "went on all the same", nil
}

// tree is a chain of instances, the last of which waits, and tells the first.
func tree(ctx *perdure.OrchestrationContext, depth int) (string, error) {
	if depth == 0 {
		return waits(ctx, struct{}{})
	}
	id := perdure.WithInstanceID(ctx.InstanceID() + "/c")
	below := perdure.CallSubOrchestrationByName[string](ctx, "CancelTree", depth-1, id)
	ctx.SetCustomStatus("leaf is waiting")
	return below.Await(ctx)
}

// allBelow: so many generations below are cancelled, each because of the one above, as far as they have begun.
func allBelow(depth int) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for n := range depth {
			id := s.InstanceID + strings.Repeat("/c", n+1)
			below, err := c.Status(ctx, id)
			if errors.Is(err, client.ErrNotFound) {
				return nil // the one above was cancelled before it began, or this one was
			}
			if err != nil {
				return err
			}
			if below.Status != client.StatusCancelled || below.Failure.Reason != string(perdure.ReasonParentCancelled) {
				return fmt.Errorf("%s is %s: %+v", id, below.Status, below.Failure)
			}
		}
		return nil
	}
}

// cancelledBeside: a child is cancelled for this reason, or never began.
func cancelledBeside(suffix, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		below, err := c.Wait(ctx, s.InstanceID+suffix)
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if below.Status != client.StatusCancelled || below.Failure.Reason != reason {
			return fmt.Errorf("the child is %s: %+v, want it cancelled: %s", below.Status, below.Failure, reason)
		}
		return nil
	}
}

// impatient gives up on a child that waits for ever.
func impatient(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	below := perdure.CallSubOrchestrationByName[string](ctx, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/c"))
	if first, err := perdure.Select(ctx, below, perdure.CreateTimer(ctx, 60*tick)); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the child has ended"))
	}
	return "gave up", nil
}

// hurried gives a child a while, in a scope of its own, and then goes on outside of it.
func hurried(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	scope, done := perdure.WithTimeout(ctx, 60*tick)
	defer done()
	_, err := perdure.CallSubOrchestrationByName[string](scope, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/c")).Await(scope)
	again := perdure.Sleep(scope, tick)
	n, failed := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 7).Await(ctx)
	if failed != nil {
		return "", failed
	}
	same := err == again //nolint:errorlint // the very error
	return fmt.Sprintf("timeout: %v %v, then %d", errors.Is(err, context.DeadlineExceeded), same, n), nil
}
