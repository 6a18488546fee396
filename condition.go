package perdure

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/replay/retry"
)

// PollPolicy sets the intervals and the limits of the checks of WaitForCondition. The zero value checks every 5
// seconds, without a limit.
type PollPolicy struct {
	// Name is the name of the timers between the checks, as in WithTimerName. If it is empty, the timers have no name.
	Name string
	// MaxAttempts is the maximum number of checks, including the first one. 0 means no limit.
	MaxAttempts int
	// Timeout limits the time from the start of the first check to the start of the last one. The last check is made
	// when the timeout has elapsed. The timeout does not end a running check. Use the timeouts of the calls in the
	// check. 0 means no limit.
	Timeout time.Duration
	// InitialInterval is the time between the end of the first check and the second check. The default is 5 seconds.
	// Intervals are rounded up to whole milliseconds.
	InitialInterval time.Duration
	// BackoffCoefficient is the growth factor of the intervals, 1 or more. The default is 1, so the intervals are
	// constant.
	BackoffCoefficient float64
	// MaxInterval caps the intervals. The default is one hour, or InitialInterval if it is longer.
	MaxInterval time.Duration
	// Jitter is the random part of each interval, from 0 to 1, as in RetryPolicy. The default is 0, which means no
	// jitter, like NoJitter. The random choice depends only on the execution and the number of the check. Package
	// perduretest disables jitter unless the test enables it.
	Jitter float64
}

// ConditionNotMetError is returned by WaitForCondition if the policy allows no further check. errors.Is finds
// context.DeadlineExceeded in it if PollPolicy.Timeout was the limit.
type ConditionNotMetError struct {
	// Attempts is the number of checks. Waited is the time from the start of the first check to the end of the last
	// one.
	Attempts int
	Waited   time.Duration
	// TimedOut is true if Timeout was the limit, and false if MaxAttempts was the limit.
	TimedOut bool
	// State is the state that the last check and WaitForCondition returned.
	State any
}

// Error returns a message with the number of checks and the time waited. The message does not contain the state.
func (e *ConditionNotMetError) Error() string {
	return fmt.Sprintf("condition not met after %d checks in %v", e.Attempts, e.Waited)
}

// Is reports whether the policy timed out and target is context.DeadlineExceeded.
func (e *ConditionNotMetError) Is(target error) bool {
	return e.TimedOut && target == context.DeadlineExceeded
}

// WaitForCondition calls check repeatedly until the function until returns true for the returned state, and returns
// that state. The first check runs immediately with the initial state. Each later check runs after the interval of the
// policy, with the state of the previous check. Both functions are orchestration code. check calls activities, usually
// inline activities. until decides only from the state.
//
//	check := func(ctx *perdure.OrchestrationContext, j Job) (Job, error) {
//		return perdure.CallActivity(ctx, describe, j.ID).Await(ctx)
//	}
//	policy := perdure.PollPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 1.5}
//	job, err := perdure.WaitForCondition(ctx, Job{ID: id}, check, Job.isDone, policy)
//
// WaitForCondition returns early in these cases:
//
//   - If check returns an error, WaitForCondition returns the error unchanged, and the previous state. Use a retry
//     policy in check to retry its calls.
//   - If the policy allows no further check, it returns a *ConditionNotMetError, and the last state.
//   - If the scope of ctx is cancelled, it returns the error of the scope.
//
// WaitForCondition panics if the policy has a negative value other than NoJitter, a BackoffCoefficient below 1,
// a MaxInterval below InitialInterval, or a Jitter above 1.
//
// A check with one activity adds about six events to the history. For more than a thousand checks, limit MaxAttempts
// and continue as new with the state.
func WaitForCondition[S any](
	ctx *OrchestrationContext, initial S, check func(ctx *OrchestrationContext, state S) (S, error),
	until func(state S) bool, p PollPolicy,
) (S, error) {
	policy := retry.PollPolicy(p)
	if problem := policy.Problem(); problem != "" {
		panic("perdure: WaitForCondition: " + problem)
	}
	var named []TimerOption
	if p.Name != "" {
		named = []TimerOption{WithTimerName(p.Name)}
	}
	intervals, began, state := policy.Intervals(), ctx.Now(), initial
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return state, err
		}
		next, err := check(ctx, state)
		if err != nil {
			return state, err
		}
		if state = next; until(state) {
			return state, nil
		}

		waited := ctx.Now().Sub(began)
		delay, last, timedOut := policy.After(attempt, waited, ctx.replay.PollDelay(intervals, attempt))
		if last {
			return state, &ConditionNotMetError{Attempts: attempt, Waited: waited, TimedOut: timedOut, State: state}
		}
		if err := Sleep(ctx, delay, named...); err != nil {
			return state, err
		}
	}
}
