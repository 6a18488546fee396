package perdure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// PollPolicy says how WaitForCondition checks again and again. The zero value is: every five seconds, for as long as the instance lives.
type PollPolicy struct {
	// Name is that of the timers between the checks, as WithName gives one; empty: they have none.
	Name string
	// MaxAttempts counts all checks, the first too. 0 is no limit.
	MaxAttempts int
	// Timeout is how long after the first check began another may begin: the last one is made at its end. A check that is under way is not ended by it:
	// that is for the limits of what it calls. 0 is no limit.
	Timeout time.Duration
	// Interval is the time between the end of the first check and the second; by default five seconds. Intervals are rounded up to whole milliseconds.
	Interval time.Duration
	// Coefficient is how much longer each interval is than the one before, 1 or more; by default 1: they are all the same.
	Coefficient float64
	// MaxInterval caps the intervals; by default an hour, or Interval where that is longer.
	MaxInterval time.Duration
	// Jitter is the part of each interval that is left to chance, as in RetryPolicy, up to 1, so that instances which were started together do not check
	// together. By default, and with NoJitter, there is none. The choice depends on the execution and the number of the check alone; perduretest makes it none, too, unless the
	// test asks for it.
	Jitter float64
}

// defaultPollInterval is PollPolicy.Interval where that is not given.
const defaultPollInterval = 5 * time.Second

// wrong names the field that cannot be.
func (p *PollPolicy) wrong() string {
	switch {
	case p.MaxAttempts < 0:
		return fmt.Sprintf("MaxAttempts %d is negative", p.MaxAttempts)
	case p.Timeout < 0:
		return fmt.Sprintf("Timeout %v is negative", p.Timeout)
	case p.Interval < 0:
		return fmt.Sprintf("Interval %v is negative", p.Interval)
	case p.Coefficient != 0 && !(p.Coefficient >= 1 && p.Coefficient <= math.MaxFloat64):
		return fmt.Sprintf("Coefficient %v is not a number from 1 on", p.Coefficient)
	case p.MaxInterval < 0:
		return fmt.Sprintf("MaxInterval %v is negative", p.MaxInterval)
	case p.MaxInterval > 0 && p.MaxInterval < cmp.Or(p.Interval, defaultPollInterval):
		return fmt.Sprintf("MaxInterval %v is below Interval %v", p.MaxInterval, cmp.Or(p.Interval, defaultPollInterval))
	case p.Jitter != NoJitter && !(p.Jitter >= 0 && p.Jitter <= 1):
		return fmt.Sprintf("Jitter %v is neither NoJitter nor a number from 0 to 1", p.Jitter)
	default:
		return ""
	}
}

// intervals are those of the policy, in the form in which those between attempts are.
func (p *PollPolicy) intervals() *history.RetryPolicy {
	interval := cmp.Or(p.Interval, defaultPollInterval)
	return &history.RetryPolicy{
		InitialIntervalMs:  replay.Milliseconds(interval),
		MaxIntervalMs:      replay.Milliseconds(cmp.Or(p.MaxInterval, max(replay.DefaultMaxInterval, interval))),
		BackoffCoefficient: cmp.Or(p.Coefficient, 1),
		Jitter:             max(p.Jitter, 0),
	}
}

// ConditionNotMetError says that WaitForCondition has given up: its policy allows no other check. What ended it by PollPolicy.Timeout is a
// context.DeadlineExceeded.
type ConditionNotMetError struct {
	// Attempts is how many checks were made, Waited how long after the beginning of the first the last was over.
	Attempts int
	Waited   time.Duration
	// TimedOut says that it was the Timeout; else MaxAttempts.
	TimedOut bool
	// State is what the last check returned: WaitForCondition returns it, too.
	State any
}

// Error implements error. It has no word of the state.
func (e *ConditionNotMetError) Error() string {
	return fmt.Sprintf("the condition is not met after %d checks in %v", e.Attempts, e.Waited)
}

// Is makes one that has timed out a context.DeadlineExceeded.
func (e *ConditionNotMetError) Is(target error) bool {
	return e.TimedOut && target == context.DeadlineExceeded
}

// WaitForCondition calls check until the state that it returns is one at which until says true, and returns that. The first check is made at once, with the
// initial state; each other one with the state of the check before, after the interval of the policy. Both functions are code of the orchestration: check does
// its work by activities, inline ones as a rule, and until decides by the state alone.
//
//	job, err := perdure.WaitForCondition(ctx, Job{ID: id}, func(ctx *perdure.OrchestrationContext, j Job) (Job, error) {
//		return perdure.CallActivity(ctx, describe, j.ID).Await(ctx)
//	}, Job.isOver, perdure.PollPolicy{Interval: 10 * time.Second, Coefficient: 1.5, MaxInterval: time.Minute, Timeout: time.Hour})
//
// An error of check ends the wait, and is returned as it is, with the state of before: what is to be tried again has a retry policy of its own. Where the policy
// allows no other check the error is a *ConditionNotMetError, and the state the last. The end of the scope of ctx ends the wait, with its error. A policy with a
// negative value other than NoJitter, a Coefficient below 1, a MaxInterval below Interval or a Jitter above 1 panics.
//
// A check is in history: with an activity, inline or not, six events, its timer and turns among them. For more than a thousand checks limit MaxAttempts, and continue
// as new with the state.
func WaitForCondition[S any](
	ctx *OrchestrationContext, initial S, check func(ctx *OrchestrationContext, state S) (S, error), until func(state S) bool, p PollPolicy,
) (S, error) {
	if wrong := p.wrong(); wrong != "" {
		panic("perdure: WaitForCondition: " + wrong)
	}
	var named []TimerOption
	if p.Name != "" {
		named = []TimerOption{WithName(p.Name)}
	}
	intervals, began, state := p.intervals(), ctx.Now(), initial
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

		delay, waited := replay.PollDelay(ctx.replay, intervals, attempt), ctx.Now().Sub(began)
		timedOut := p.Timeout > 0 && waited >= p.Timeout
		if timedOut || p.MaxAttempts > 0 && attempt >= p.MaxAttempts {
			return state, &ConditionNotMetError{Attempts: attempt, Waited: waited, TimedOut: timedOut, State: state}
		}
		if p.Timeout > 0 {
			delay = min(delay, p.Timeout-waited)
		}
		if err := Sleep(ctx, delay, named...); err != nil {
			return state, err
		}
	}
}
