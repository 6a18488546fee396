package scenarios

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
)

// stopping is what the seeds want of cancellation, row by row: each decision is history, and is seen where the work is
// done.
func stopping(tick time.Duration) []Scenario { //nolint:funlen // a table of scenarios
	mark := filepath.Join(os.TempDir(), "perdure-told-"+rand.Text())
	return []Scenario{
		{
			Name: "SelectTimeoutCancelsLosingActivity", Register: body(outwaited), Input: tick,
			Check: all(gives("gave up"), decided(watchName, "select_loser")), Calm: heard("select_loser"),
		},
		{
			Name: "SelectTwoActivitiesLoserSeesReason", Register: body(outrun), Input: tick,
			Check: all(gives("rested"), decided(watchName, "select_loser")), Calm: heard("select_loser"),
		},
		{
			Name: "RetryStartToCloseTimeoutCancelsTheAttempt", Register: body(slowFirst, slowAtFirst),
			Input: Slow{tick, mark},
			Check: all(gives("attempt 2, after the first was told"), swept(mark)),
		},
		{
			Name: "CancelInstanceCancelsOutstandingActivities", Register: body(watchesThree), Input: tick,
			Drive: cancelsWhen("waiting"),
			Check: all(cancelled, decided(watchName, "requested"), decided(watchName, "requested"),
				decided(watchName, "requested")), Calm: heard("requested"),
		},
		{
			Name: "UndoWaitsForTheEndOfWhatItUndoes", Register: body(watchesAndUndoes), Input: tick,
			Drive: cancelsWhen("waiting"),
			Check: all(cancelled, decided(watchName, "requested"), undoneAfter(watchName)), Calm: heard("requested"),
		},
		{
			Name: "OrchestrationFailureCancelsOutstanding", Register: body(failsBeside), Input: tick,
			Check: all(fails("error", "enough"), decided(watchName, "orchestration_terminal_failed")),
			Calm:  ended(watchName),
		},
		{
			Name: "ContinueAsNewCancelsPreviousExecution", Register: body(leavesWatch), Input: Saying{first, tick},
			Check: all(gives(second), executions(2),
				decidedBefore(watchName, "orchestration_terminal_continued_as_new")), Calm: endedBefore(watchName),
		},
		{
			Name: "CancelledActivityResumesOrchestration", Register: body(forgiving), Input: tick,
			Drive: cancelsActivity,
			Check: all(gives("went on: requested: "+because), decided(watchName, "requested")),
			Calm:  heard("requested"),
		},
		{
			Name: "CancelTimerNeverFires", Register: body(cancelsTimer), Input: tick,
			Check: all(gives("timer: requested, then all was quiet"), neverFires),
		},
		{
			Name: "CancelChild", Register: body(cancelsChild), Input: tick, Drive: seesCancelling,
			Check: all(gives("dropped_future"), decided("UnwindsSlowly", "dropped_future"),
				answered(history.SubOrchestrationFailed, history.TypeCancelled),
				cancelledBeside("/c", "dropped_future"), askedByParent("/c")),
		},
		{
			Name: "ChildReachesCancelled", Register: body(cancelsChild), Input: tick,
			Check: all(gives("dropped_future"), cancelledBeside("/c", "dropped_future")),
		},
		{
			Name: "CancelChildNotFound", Register: body(cancelsStranger), Input: tick, Drive: withStranger,
			Check: all(gives("requested"), neverBegan, strangerLives),
		},
	}
}

// addStopping adds what these scenarios call.
func addStopping(r *perdure.Registry) {
	perdure.AddActivity(r, watchName, watch)
	perdure.AddOrchestration(r, "UnwindsSlowly", unwindsSlowly)
}

// watchName is what watch is called.
const watchName = "Watch"

// watch is over when it is told why.
func watch(ctx context.Context, _ struct{}) (string, error) {
	<-ctx.Done()
	cause := context.Cause(ctx)
	if c, ok := errors.AsType[*perdure.CancelledError](cause); ok && c.Reason != perdure.ReasonInvocationDeadline &&
		c.Reason != perdure.ReasonLockLost && c.Reason != perdure.ReasonShutdown {
		return string(c.Reason), nil
	}
	return "", cause
}

// linger is how long an orchestration stays for what cancelled activities have to say: several times the poll interval.
const linger = 16

func outwaited(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}),
		perdure.CreateTimer(ctx, 2*tick)); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	return "gave up", perdure.Sleep(ctx, linger*tick)
}

func outrun(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	rest := perdure.CallActivity(ctx, nap, 2*tick)
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}), rest); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	if err := perdure.Sleep(ctx, linger*tick); err != nil {
		return "", err
	}
	return rest.Await(ctx)
}

// Slow is how long the attempts of an activity may take, in ticks, and the file that the first makes when it is told
// that it took too long: the second may be in another process.
type Slow struct {
	Tick time.Duration
	Mark string
}

// slowFirst gives each attempt of an activity a while. The first takes longer, and must be told so.
func slowFirst(ctx *perdure.OrchestrationContext, s Slow) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{
		MaxAttempts: 2, InitialInterval: s.Tick, NonRetryableErrorTypes: []string{"DeafError"},
	})
	return perdure.CallActivityByName[string](ctx, "SlowAtFirst", s, perdure.WithStartToCloseTimeout(4*s.Tick),
		retried).Await(ctx)
}

// DeafError is that of an attempt which was not told that its time is over.
type DeafError struct{ Cause string }

func (e *DeafError) Error() string { return "told " + e.Cause }

func slowAtFirst(r *perdure.Registry) {
	perdure.AddActivity(r, "SlowAtFirst", func(ctx context.Context, s Slow) (string, error) {
		if n := perdure.ActivityInfoFrom(ctx).Attempt; n > 1 {
			_, err := os.Stat(s.Mark)
			return fmt.Sprintf("attempt %d, after the first was told", n), err
		}
		<-ctx.Done()
		if late, ok := errors.AsType[*perdure.TimeoutError](context.Cause(ctx)); ok {
			return "", errors.Join(late, os.WriteFile(s.Mark, nil, 0o600))
		}
		return "", &DeafError{context.Cause(ctx).Error()}
	})
}

func watchesThree(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	ctx.SetCustomStatus("waiting")
	var all []perdure.Awaitable
	for range 3 {
		all = append(all, perdure.CallActivity(ctx, watch, struct{}{}))
	}
	err := perdure.WhenAll(ctx, all...)
	safe := perdure.WithoutCancel(ctx)
	return struct{}{}, errors.Join(err, perdure.Sleep(safe, linger*tick))
}

//perdure:ignore unawaited what becomes of it is what the scenario shows
func failsBeside(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	perdure.CallActivity(ctx, watch, struct{}{})
	return struct{}{}, errors.Join(perdure.Sleep(ctx, 2*tick), errors.New("enough"))
}

//perdure:ignore unawaited what becomes of it is what the scenario shows
func leavesWatch(ctx *perdure.OrchestrationContext, s Saying) (string, error) {
	if s.Text == second {
		return second, perdure.Sleep(ctx, linger*s.After)
	}
	perdure.CallActivity(ctx, watch, struct{}{})
	if err := perdure.Sleep(ctx, 2*s.After); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, Saying{second, s.After})
}

// forgiving goes on when its activity is cancelled, and says why it was.
func forgiving(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	_, err := perdure.CallActivity(ctx, watch, struct{}{}).Await(ctx)
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return "", err
	}
	return fmt.Sprintf("went on: %s: %s", c.Reason, c.Message), perdure.Sleep(ctx, linger*tick)
}

// cancelsActivity cancels the one that the instance waits for, twice.
func cancelsActivity(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	for e, err := range w.Client.History(ctx, id) {
		if err != nil {
			return err
		}
		if e.Kind != history.ActivityScheduled {
			continue
		}
		for range 2 {
			err = w.Client.CancelActivity(ctx, id, e.ID, because)
			if err != nil && !errors.Is(err, client.ErrNotCancellable) { // the first may have been heard already
				return err
			}
		}
		return nil
	}
	return errors.New("the instance has no activity")
}

func cancelsTimer(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	timer := perdure.CreateTimer(ctx, 4*tick)
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	timer.Cancel("not needed")
	_, err := timer.Await(ctx)
	return fmt.Sprintf("timer: %s, then all was quiet", reasonOf(err)), perdure.Sleep(ctx, 8*tick)
}
