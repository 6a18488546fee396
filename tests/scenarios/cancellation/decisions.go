package cancellation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// decisionScenarios cancel each kind of task. Each decision is in the history, and running work observes it.
func decisionScenarios(tick time.Duration) []kit.Scenario { //nolint:funlen // a table of scenarios
	mark := filepath.Join(os.TempDir(), "perdure-timed-out-"+rand.Text())
	return []kit.Scenario{
		{
			Name: "SelectTimeoutCancelsLosingActivity", Register: kit.Run(loseToTimer), Input: tick,
			Check:              kit.All(kit.Returns("gave up"), kit.CancelledBecause(watchName, "select_loser")),
			CheckWithoutFaults: reasonsReported("select_loser"),
		},
		{
			Name: "SelectTwoActivitiesLoserSeesReason", Register: kit.Run(loseToActivity), Input: tick,
			Check:              kit.All(kit.Returns("rested"), kit.CancelledBecause(watchName, "select_loser")),
			CheckWithoutFaults: reasonsReported("select_loser"),
		},
		{
			Name: "RetryStartToCloseTimeoutCancelsTheAttempt", Register: kit.Run(retryTimedOut, addSlowAtFirst),
			Input: SlowInput{tick, mark},
			Check: kit.All(kit.Returns("attempt 2, after the first was cancelled"), removeFile(mark)),
		},
		{
			Name: "CancelInstanceCancelsOutstandingActivities", Register: kit.Run(watchThree), Input: tick,
			Drive:              cancelAt("waiting"),
			Check:              kit.All(cancelled, kit.CancelledBecause(watchName, "requested")),
			CheckWithoutFaults: reasonsReported("requested"),
		},
		{
			Name: "CompensationWaitsForActivityEnd", Register: kit.Run(undoAfterEnd), Input: tick,
			Drive: cancelAt("waiting"),
			Check: kit.All(
				cancelled, kit.CancelledBecause(watchName, "requested"), undoneAfterEnd(watchName)),
			CheckWithoutFaults: reasonsReported("requested"),
		},
		{
			Name: "OrchestrationFailureCancelsOutstanding", Register: kit.Run(failWithPending), Input: tick,
			Check: kit.All(kit.Fails("error", "enough"),
				kit.CancelledBecause(watchName, "orchestration_terminal_failed")),
			CheckWithoutFaults: outcomesKnown(watchName),
		},
		{
			Name: "ContinueAsNewCancelsPreviousExecution", Register: kit.Run(continueWithPending),
			Input: kit.SayInput{Text: kit.First, After: tick},
			Check: kit.All(kit.Returns(kit.Second), kit.Executions(2),
				cancelledBecauseBefore(watchName, "orchestration_terminal_continued_as_new")),
			CheckWithoutFaults: outcomesKnownBefore(watchName),
		},
		{
			Name: "CancelledActivityResumesOrchestration", Register: kit.Run(tolerateCancel), Input: tick,
			Drive: cancelActivityTwice,
			Check: kit.All(kit.Returns("continued: requested: "+cancelMessage),
				kit.CancelledBecause(watchName, "requested")),
			CheckWithoutFaults: reasonsReported("requested"),
		},
		{
			Name: "CancelTimerNeverFires", Register: kit.Run(cancelTimer), Input: tick,
			Check: kit.All(kit.Returns("timer: requested, then nothing happened"), timerNeverFired),
		},
		{
			Name: "CancelChild", Register: kit.Run(cancelChild), Input: tick, Drive: awaitCancelling,
			Check: kit.All(kit.Returns("dropped_future"), kit.CancelledBecause("UnwindsSlowly", "dropped_future"),
				hasFailure(history.SubOrchestrationFailed, history.TypeCancelled),
				kit.OtherCancelled("/c", "dropped_future"), requestedByParent("/c")),
		},
		{
			Name: "ChildReachesCancelled", Register: kit.Run(cancelChild), Input: tick,
			Check: kit.All(kit.Returns("dropped_future"), kit.OtherCancelled("/c", "dropped_future")),
		},
		{
			Name: "CancelChildNotFound", Register: kit.Run(cancelOther), Input: tick, Drive: startOther,
			Check: kit.All(kit.Returns("requested"), childNotStarted, kit.OtherReturns("/other", "still here")),
		},
	}
}

// watchName is the name of the activity watch.
const watchName = "Watch"

// watch waits until it is cancelled and returns the reason.
func watch(ctx context.Context, _ struct{}) (string, error) {
	<-ctx.Done()
	cause := context.Cause(ctx)
	if c, ok := errors.AsType[*perdure.CancelledError](cause); ok && c.Reason != perdure.ReasonInvocationDeadline &&
		c.Reason != perdure.ReasonLockLost && c.Reason != perdure.ReasonShutdown {
		return string(c.Reason), nil
	}
	return "", cause
}

// settleTicks is the time that an orchestration waits for the results of cancelled activities. It is several poll
// intervals.
const settleTicks = 16

// loseToTimer lets an activity lose a Select to a timer.
func loseToTimer(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}),
		perdure.CreateTimer(ctx, 2*tick)); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	return "gave up", perdure.Sleep(ctx, settleTicks*tick)
}

// loseToActivity lets an activity lose a Select to another activity.
func loseToActivity(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	rest := perdure.CallActivity(ctx, kit.Nap, 2*tick)
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}), rest); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	if err := perdure.Sleep(ctx, settleTicks*tick); err != nil {
		return "", err
	}
	return rest.Await(ctx)
}

// SlowInput has the unit of the start-to-close timeout, and a file that the first attempt creates when it observes the
// timeout. The second attempt may run in another process.
type SlowInput struct {
	Tick time.Duration
	Mark string
}

// retryTimedOut limits the attempts of an activity. The first attempt exceeds the limit and must observe it.
func retryTimedOut(ctx *perdure.OrchestrationContext, s SlowInput) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts: 2, InitialInterval: s.Tick, NonRetryableErrorTypes: []string{"NoTimeoutError"},
	})
	return perdure.CallActivityByName[string](ctx, "SlowAtFirst", s, perdure.WithStartToCloseTimeout(4*s.Tick),
		retried).Await(ctx)
}

// NoTimeoutError is the error of an attempt that was stopped without a timeout.
type NoTimeoutError struct{ Cause string }

func (e *NoTimeoutError) Error() string { return "stopped by " + e.Cause }

// addSlowAtFirst adds an activity whose first attempt waits for its timeout.
func addSlowAtFirst(r *perdure.Registry) {
	perdure.AddActivity(r, "SlowAtFirst", func(ctx context.Context, s SlowInput) (string, error) {
		if n := perdure.ActivityInfoFrom(ctx).Attempt; n > 1 {
			_, err := os.Stat(s.Mark)
			return fmt.Sprintf("attempt %d, after the first was cancelled", n), err
		}
		<-ctx.Done()
		if late, ok := errors.AsType[*perdure.TimeoutError](context.Cause(ctx)); ok {
			return "", errors.Join(late, os.WriteFile(s.Mark, nil, 0o600))
		}
		return "", &NoTimeoutError{context.Cause(ctx).Error()}
	})
}

// watchThree waits for three activities.
func watchThree(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	ctx.SetCustomStatus("waiting")
	var all []perdure.Awaitable
	for range 3 {
		all = append(all, perdure.CallActivity(ctx, watch, struct{}{}))
	}
	err := perdure.WhenAll(ctx, all...)
	safe := perdure.WithoutCancel(ctx)
	return struct{}{}, errors.Join(err, perdure.Sleep(safe, settleTicks*tick))
}

// failWithPending fails while an activity runs.
//
//perdure:ignore unawaited the scenario tests it
func failWithPending(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	perdure.CallActivity(ctx, watch, struct{}{})
	return struct{}{}, errors.Join(perdure.Sleep(ctx, 2*tick), errors.New("enough"))
}

// continueWithPending continues as new while an activity runs.
//
//perdure:ignore unawaited the scenario tests it
func continueWithPending(ctx *perdure.OrchestrationContext, s kit.SayInput) (string, error) {
	if s.Text == kit.Second {
		return kit.Second, perdure.Sleep(ctx, settleTicks*s.After)
	}
	perdure.CallActivity(ctx, watch, struct{}{})
	if err := perdure.Sleep(ctx, 2*s.After); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, kit.SayInput{Text: kit.Second, After: s.After})
}

// tolerateCancel continues when its activity is cancelled, and returns the reason.
func tolerateCancel(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	_, err := perdure.CallActivity(ctx, watch, struct{}{}).Await(ctx)
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return "", err
	}
	return fmt.Sprintf("continued: %s: %s", c.Reason, c.Message), perdure.Sleep(ctx, settleTicks*tick)
}

// cancelActivityTwice cancels the activity of the instance, twice.
func cancelActivityTwice(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	activities, err := kit.EventsOf(ctx, w.Client, id, history.ActivityScheduled)
	if err != nil || len(activities) == 0 {
		return errors.Join(err, errors.New("instance has no activity"))
	}
	for range 2 {
		err = w.Client.CancelActivity(ctx, id, activities[0].ID, cancelMessage)
		if err != nil && !errors.Is(err, client.ErrNotCancellable) { // the first request may have arrived already
			return err
		}
	}
	return nil
}

// cancelTimer cancels a timer.
func cancelTimer(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	timer := perdure.CreateTimer(ctx, 4*tick)
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	timer.Cancel("not needed")
	_, err := timer.Await(ctx)
	return fmt.Sprintf("timer: %s, then nothing happened", kit.ReasonOf(err)), perdure.Sleep(ctx, 8*tick)
}
