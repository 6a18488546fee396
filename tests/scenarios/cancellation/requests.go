package cancellation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func requestScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "CancelledInstanceRunsCompensation", Register: kit.Run(guardedTrip),
			Input: []string{"cabin", "ferry"},
			Drive: cancelAt("waiting"),
			Check: kit.All(cancelled, kit.CustomStatus(`"released ferry, released cabin"`),
				kit.CancelledBecause(watchName, "requested")),
			CheckWithoutFaults: outcomesKnown(watchName),
		},
		{
			Name: "CompensationThatFailsIsAFailure", Register: kit.Run(guardedTrip),
			Input: []string{"cabin", kit.NonRefundable},
			Drive: cancelAt("waiting"),
			Check: kit.Fails("ActivityError", "cannot be released", "cancelled (requested)"),
		},
		{
			Name: "CancelIsIgnored", Register: kit.Run(ignoreCancel), Drive: cancelAt("waiting"),
			Check: kit.Returns("continued despite the cancellation"),
		},
		{
			Name: "CancelTree", Register: kit.Run(callDescendants), Input: 3, Drive: cancelAt("leaf is waiting"),
			Check: kit.All(cancelled, descendantsCancelled(3)),
		},
		{
			Name: "LosingChildIsCancelled", Register: kit.Run(abandonChild), Input: tick,
			Check: kit.All(kit.Returns("gave up"), kit.OtherCancelled("/c", "select_loser")),
		},
		{
			Name: "TimedOutScope", Register: kit.Run(timeOutScope), Input: tick,
			Check: kit.All(kit.Returns("timeout: true true, then 7"), kit.OtherCancelled("/c", "timeout")),
		},
		{
			Name: "CancelDelayedStart", Register: kit.Run(kit.WaitForGo),
			Start: []client.StartOption{client.WithDelay(60 * tick)},
			Drive: cancel,
			Check: cancelled,
		},
		{
			Name: "LongTimerOfACancelledInstance", Register: kit.Run(kit.SleepAtLeast), Input: 200 * tick,
			Virtual: true,
			Drive:   cancelLate,
			Check:   cancelled,
		},
	}
}

// cancelMessage is the message of the cancellations.
const cancelMessage = "changed our mind"

// cancelled checks that the instance was cancelled by the client.
func cancelled(_ context.Context, _ *client.Client, s client.Status) error {
	_, err := client.Result[any](s)
	var c *perdure.CancelledError
	if s.Status != client.StatusCancelled || !errors.As(err, &c) || c.Reason != perdure.ReasonRequested ||
		c.Message != cancelMessage {
		return fmt.Errorf("%s, %w; want cancelled (requested): %s", s.Status, err, cancelMessage)
	}
	return nil
}

func cancel(ctx context.Context, w kit.World, id string) error {
	return w.Client.Cancel(ctx, id, cancelMessage)
}

// cancelAt cancels at this custom status, twice, like a client without a response.
func cancelAt(status string) func(ctx context.Context, w kit.World, id string) error {
	return func(ctx context.Context, w kit.World, id string) error {
		if err := w.UntilStatus(ctx, id, status); err != nil {
			return err
		}
		if err := cancel(ctx, w, id); err != nil {
			return err
		}
		if err := cancel(ctx, w, id); !errors.Is(err, client.ErrEnded) {
			return err
		}
		return nil
	}
}

func cancelLate(ctx context.Context, w kit.World, id string) error {
	w.Pass(100 * w.Tick)
	return cancel(ctx, w, id)
}

// guardedTrip reserves the items and waits while an activity runs. After an error, it undoes the reservations, the
// latest first.
//
//perdure:ignore unawaited the scenario tests it
func guardedTrip(ctx *perdure.OrchestrationContext, items []string) (_ struct{}, err error) {
	var reserved, log []string
	defer func() {
		if err == nil {
			return
		}
		safe := perdure.WithoutCancel(ctx)
		for _, item := range slices.Backward(reserved) {
			done, undoErr := perdure.CallActivity(safe, kit.Undo, item).Await(safe)
			if log = append(log, done); undoErr != nil {
				err = errors.Join(err, undoErr)
			}
		}
		ctx.SetCustomStatus(strings.Join(log, ", "))
	}()
	for _, item := range items {
		if _, err := perdure.CallActivity(ctx, kit.Reserve, item).Await(ctx); err != nil {
			return struct{}{}, err
		}
		reserved = append(reserved, item)
	}
	perdure.CallActivity(ctx, watch, struct{}{})
	_, err = kit.WaitForGo(ctx, struct{}{})
	return struct{}{}, err
}

// ignoreCancel returns a result although it is cancelled.
func ignoreCancel(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	if _, err := kit.WaitForGo(ctx, struct{}{}); err == nil {
		return "", errors.New("was not cancelled")
	}
	return "continued despite the cancellation", nil
}

// callDescendants calls a child that calls the next child, down to a depth of 0. The last child waits.
func callDescendants(ctx *perdure.OrchestrationContext, depth int) (string, error) {
	if depth == 0 {
		return kit.WaitForGo(ctx, struct{}{})
	}
	id := perdure.WithInstanceID(ctx.InstanceID() + "/c")
	below := perdure.CallSubOrchestrationByName[string](ctx, "CancelTree", depth-1, id)
	ctx.SetCustomStatus("leaf is waiting")
	return below.Await(ctx)
}

// descendantsCancelled checks that the started descendants, of this number of generations, were cancelled by their
// parents.
func descendantsCancelled(depth int) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for n := range depth {
			id := s.InstanceID + strings.Repeat("/c", n+1)
			below, err := c.Status(ctx, id)
			if errors.Is(err, client.ErrNotFound) {
				return nil // it or its parent was cancelled before it started
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

// abandonChild lets a waiting child lose a Select.
func abandonChild(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	below := perdure.CallSubOrchestrationByName[string](ctx, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/c"))
	if first, err := perdure.Select(ctx, below, perdure.CreateTimer(ctx, 60*tick)); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the child has ended"))
	}
	return "gave up", nil
}

// timeOutScope waits for a child in a scope with a timeout, and continues outside of the scope.
func timeOutScope(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	scope, done := perdure.WithTimeout(ctx, 60*tick)
	defer done()
	_, err := perdure.CallSubOrchestrationByName[string](scope, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/c")).Await(scope)
	again := perdure.Sleep(scope, tick)
	n, failed := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 7).Await(ctx)
	if failed != nil {
		return "", failed
	}
	same := err == again //nolint:errorlint // must be the same value
	return fmt.Sprintf("timeout: %v %v, then %d", errors.Is(err, context.DeadlineExceeded), same, n), nil
}
